#include <spdlog/spdlog.h>
#include <algorithm>
#include <memory>

#include "sim/advise/advise.hpp"
#include "sim/commands/commands.hpp"
#include "sim/commands/progress_reporter.hpp"
#include "sim/commands/scenario_flags.hpp"
#include "sim/commands/terminal.hpp"
#include "sim/core/output_file.hpp"
#include "sim/core/shown.hpp"
#include "sim/run/resolver.hpp"
#include "sim/transformer/list_advice.hpp"

namespace overlap {
namespace {

struct AdviseFlags {
    WorkloadFlags workload;
    std::string topology, host, format = "text";
    bool steady = false;
    std::vector<std::string> agents, traces, what_if;
    std::size_t top = 5;
    std::optional<std::size_t> count;
    std::string fit, judge, simulate, header, out, constants, kernels = "any";
    std::optional<int> seeds;
};

void print_advice(const AdviseFlags& flags, const ConfigFolder& folder) {
    RunConfig config;
    config.origin = "command line";
    config.topology = flags.topology;
    config.schedule = "serial";  // only for resolving; every candidate brings its own
    config.seeds = flags.seeds;
    config.host = flags.host;
    if (flags.steady) config.repeat = Repeat::steady;
    flags.workload.apply(config, folder);
    assign_what_ifs(config.what_if, flags.what_if);
    Resolver resolver(folder);
    const Scenario scenario = resolver.resolve(config);
    if (scenario.machine->topology.gpus() < 2)
        throw UserError("command line: --topology " + flags.topology + " has one GPU, nothing to overlap");
    const AllowedCandidates allowed{flags.agents, flags.kernels == "any"};
    const SimulatedAdvice advice =
        advise(scenario, folder, flags.top, allowed,
               ProgressReporter("candidates", most_simulated(scenario, flags.top)).counter());
    for (const std::string& note : advice.remarks.notes) spdlog::warn("best candidate: {}", note);
    StudyOptions options{config, allowed};
    if (flags.steady) options.clock = StepClock::settled;
    const std::optional<ListAdvice> pairs = advise_pairs(scenario.workload, options, advice, resolver);
    if (flags.format == "json") {
        Json json = to_json(advice);
        if (pairs) json["pairs"] = to_json(*pairs);
        print(json_text(json) + "\n");
    } else if (flags.format == "csv") {
        print(to_csv(advice) + (pairs ? to_csv_rows(*pairs) : ""));
    } else {
        print_for_people(to_text(advice) + (pairs ? to_text(*pairs) : ""));
    }
}

void simulate_set(const AdviseFlags& flags, const ConfigFolder& folder) {
    const auto set = flags.simulate == "fit" ? ScenarioSet::fit : ScenarioSet::judge;
    std::vector<AdviceScenario> scenarios;
    std::vector<std::string> known;
    for (const auto& [topology, count] : scenario_counts(set, folder)) {
        known.push_back(topology);
        if (!flags.topology.empty() && flags.topology != topology) continue;
        const auto some = scenarios_of(set, topology, folder, flags.count.value_or(count));
        scenarios.insert(scenarios.end(), some.begin(), some.end());
    }
    if (scenarios.empty())
        throw UserError("command line: --topology '" + flags.topology + "' is not in this set of scenarios" +
                        suggestion(flags.topology, known));
    if (!flags.out.empty()) require_writable(flags.out);
    const std::string csv =
        to_csv(simulate(scenarios, folder, ProgressReporter("scenarios", scenarios.size()).counter()));
    if (flags.out.empty()) return print(csv);
    write_file_atomically(flags.out, csv);
}

void fit(const AdviseFlags& flags, const ConfigFolder& folder) {
    const auto table = read_scenario_table(flags.fit);
    if (!flags.header.empty()) require_writable(flags.header);
    const auto fitted = [&](bool own_kernels) {
        return fit_heuristic(table, folder, own_kernels,
                             ProgressReporter("scenarios", table.size()).counter());
    };
    const Heuristic library = fitted(false), any = fitted(true);
    if (!flags.header.empty()) write_file_atomically(flags.header, to_header(library, any));
    print(to_text(library) + "\n" + to_text(any));
}

void print_constants(const AdviseFlags& flags, const ConfigFolder& folder) {
    const std::size_t dtype =
        known_place(flags.constants, dtype_names, "command line: --constants is '" + flags.constants + "'");
    print(to_json_text(MachineConstants(flags.topology, folder).of(static_cast<DType>(dtype))) + "\n");
}

void execute(const AdviseFlags& flags) {
    const ConfigFolder folder = ConfigFolder::standard();
    if (!flags.constants.empty()) return print_constants(flags, folder);
    if (!flags.simulate.empty()) return simulate_set(flags, folder);
    if (!flags.fit.empty()) return fit(flags, folder);
    if (!flags.judge.empty()) {
        const auto table = read_scenario_table(flags.judge);
        return print(to_text(judge(table, folder, ProgressReporter("advices", 4 * table.size()).counter())));
    }
    if (!flags.traces.empty()) {
        const auto cases = read_measured_cases(flags.traces);
        return print(
            to_text(judge_measured(cases, folder, ProgressReporter("cases", cases.size()).counter())));
    }
    print_advice(flags, folder);
}

}  // namespace

void add_advise_command(CLI::App& app) {
    CLI::App* command = app.add_subcommand(
        "advise", "Advise which schedule to run, by simulation and by the static heuristic");
    auto flags = std::make_shared<AdviseFlags>();
    CLI::Option* topology = command->add_option("--topology", flags->topology,
                                                "Machine: a file, or a name in configs/topologies");
    flags->workload.add_to(*command);
    add_what_if_flag(*command, flags->what_if);
    add_host_flags(*command, flags->host, flags->steady);
    command->add_option("--agent", flags->agents, "Only candidates that copy by dma, or by cu; repeatable")
        ->check(CLI::IsMember({"dma", "cu"}))
        ->take_all();
    command
        ->add_option("--kernels", flags->kernels,
                     "library: only candidates that a vendor's GEMM library and copies can run; default any")
        ->check(CLI::IsMember({"library", "any"}));
    command
        ->add_option(
            "--top", flags->top,
            "Choices to print and to run in full: a schedule, an agent and a kind of GEMMs, with the "
            "chunks and the direction that are fastest; default 5")
        ->check(CLI::Range(1, 1000));
    command
        ->add_option("--seeds", flags->seeds,
                     "Number of simulations for each candidate if the machine leaves orders unspecified")
        ->check(CLI::Range(1, most_seeds));
    add_format_flag(*command, flags->format);

    CLI::Option* simulate =
        command
            ->add_option("--simulate", flags->simulate,
                         "Simulate every candidate of a set of scenarios, fit or judge; CSV")
            ->check(CLI::IsMember({"fit", "judge"}));
    command
        ->add_option("--count", flags->count,
                     "Number of scenarios for each topology; default as in models/heuristic")
        ->check(CLI::Range(1, 100'000))
        ->needs(simulate);
    command->add_option("--out", flags->out, "File for --simulate instead of standard output")
        ->needs(simulate);
    CLI::Option* constants =
        command
            ->add_option(
                "--constants", flags->constants,
                "Print the static heuristic's constants of --topology for operands of this data type")
            ->needs(topology);
    CLI::Option* fit =
        command->add_option("--fit", flags->fit, "Fit the static heuristic to a CSV of --simulate");
    command->add_option("--header", flags->header, "C++ header that --fit writes")->needs(fit);
    CLI::Option* judge =
        command->add_option("--judge", flags->judge, "Judge the static heuristic by a CSV of --simulate");
    CLI::Option* traces =
        command->add_option("--traces", flags->traces,
                            "Judge simulation and static heuristic by measured cases (see sim compare)");
    for (CLI::Option* mode : {constants, simulate, fit, judge, traces})
        for (CLI::Option* other : {constants, simulate, fit, judge, traces})
            if (mode != other) mode->excludes(other);
    for (CLI::Option* mode : {fit, judge, traces}) mode->excludes(topology);
    for (CLI::Option* mode : {constants, simulate, fit, judge, traces})
        for (const char* flag : {"--workload", "--gemm", "--dtype", "--collective", "--order", "--shard-dim",
                                 "--what-if", "--host", "--steady", "--agent", "--kernels"})
            mode->excludes(command->get_option(flag));
    command->callback([flags] { execute(*flags); });
}

}  // namespace overlap
