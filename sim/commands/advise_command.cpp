#include <spdlog/spdlog.h>
#include <algorithm>
#include <memory>

#include "sim/advise/advise.hpp"
#include "sim/commands/advise_trace.hpp"
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
    TraceFlags trace;
    std::string topology, host, html, format = "text";
    bool steady = false;
    std::vector<std::string> agents, what_if;
    std::size_t top = 5;
    std::string kernels = "any";
    std::optional<int> seeds;
};

void execute_for_trace(const AdviseFlags& flags) {
    TraceFlags trace = flags.trace;
    trace.topology = flags.topology;
    trace.collective = flags.workload.collective;
    print_for_people(advice_on_trace(trace, flags.format, flags.html));
}

void execute(const AdviseFlags& flags) {
    if (!flags.trace.files.empty()) return execute_for_trace(flags);
    const ConfigFolder folder = ConfigFolder::standard();
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
    for (const std::string& note : advice.remarks.notes) spdlog::warn("{}", note);
    StudyOptions options{config, allowed};
    if (flags.steady) options.clock = StepClock::settled;
    const std::optional<ListAdvice> pairs = advise_pairs(scenario.workload, options, advice, resolver);
    if (flags.format == "json") {
        Json json = to_json(advice);
        if (pairs) json["pairs"] = to_json(*pairs);
        print(json_text(json) + "\n");
    } else if (flags.format == "csv") {
        print(to_csv(advice) + (pairs ? to_csv_rows(*pairs, advice.remarks) : ""));
    } else {
        print_for_people(to_text(advice) + (pairs ? to_text(*pairs) : ""));
    }
}

}  // namespace

void add_advise_command(CLI::App& app) {
    CLI::App* command =
        app.add_subcommand("advise", "Advise which schedule to run: simulates every candidate");
    auto flags = std::make_shared<AdviseFlags>();
    command->add_option("--topology", flags->topology, "Machine: a file, or a name in configs/topologies");
    flags->workload.add_to(*command);
    CLI::Option* trace = command->add_option(
        "--trace", flags->trace.files,
        "Instead of a workload: traces of a run, as sim import reads them. Where its time goes, and what schedules of its "
        "pairs would gain in it");
    for (CLI::Option* option : add_iteration_flags(*command, flags->trace)) option->needs(trace);
    command->add_option("--html", flags->html, "With --trace: write a self-contained page")->needs(trace);
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
    for (const char* other : {"--workload", "--gemm", "--dtype", "--order", "--shard-dim", "--what-if",
                              "--host", "--steady", "--agent", "--kernels", "--top", "--seeds"})
        trace->excludes(command->get_option(other));

    command->callback([flags] { execute(*flags); });
}

}  // namespace overlap
