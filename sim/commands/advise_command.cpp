#include <spdlog/spdlog.h>
#include <algorithm>
#include <memory>

#include "sim/advise/advise.hpp"
#include "sim/advise/framework_settings.hpp"
#include "sim/commands/advise_trace.hpp"
#include "sim/commands/commands.hpp"
#include "sim/commands/progress_reporter.hpp"
#include "sim/commands/scenario_flags.hpp"
#include "sim/commands/terminal.hpp"
#include "sim/core/output_file.hpp"
#include "sim/core/shown.hpp"
#include "sim/run/resolver.hpp"
#include "sim/transformer/deepep_settings.hpp"
#include "sim/transformer/list_advice.hpp"

namespace overlap {
namespace {

/// What --table and --emit are for: a list of GEMMs or a model instead of a workload.
struct ForGemms {
    bool table = false;
    std::string gemms, model, header, emit;
    std::optional<std::int64_t> tokens;
};

struct AdviseFlags {
    WorkloadFlags workload;
    TraceFlags trace;
    std::string topology, host, html, format = "text";
    bool steady = false;
    std::vector<std::string> agents, what_if;
    std::size_t top = 5;
    std::string kernels = "any";
    std::optional<int> seeds;
    ForGemms for_gemms;
};

void require_several_gpus(const std::string& topology, int gpus) {
    if (gpus < 2)
        throw UserError("command line: --topology " + topology + " has one GPU, nothing to overlap");
}

/// --table: which schedule to take, by tokens. --emit: what frameworks are to be told.
void execute_for_gemms(const AdviseFlags& flags) {
    if (flags.format == "csv")
        throw UserError("command line: --format csv: a table is JSON, settings are text");
    const ConfigFolder folder = ConfigFolder::standard();
    const std::vector<TableGemm> gemms = read_gemms(read_config_file(flags.for_gemms.gemms, "list of GEMMs"));
    RunConfig config;
    config.origin = "command line";
    config.topology = flags.topology;
    config.host = flags.host;
    assign_what_ifs(config.what_if, flags.what_if);
    const int gpus = folder.topology(flags.topology).gpus();
    require_several_gpus(flags.topology, gpus);
    if (flags.trace.tp > 1 && flags.trace.tp != gpus)
        throw UserError("command line: --tp is " + std::to_string(flags.trace.tp) + ", but --topology " +
                        flags.topology + " has " + std::to_string(gpus) + " GPUs");
    if (!flags.for_gemms.emit.empty())
        return print(framework_settings(flags.for_gemms.emit, config, gemms, flags.for_gemms.tokens, folder));
    if (!flags.for_gemms.header.empty()) require_writable(flags.for_gemms.header);
    const AdviceTable table =
        advice_table(config, gemms, {flags.agents, flags.kernels == "any"}, folder,
                     ProgressReporter("buckets", gemms.size() * table_buckets().size()).counter());
    if (!flags.for_gemms.header.empty()) write_file_atomically(flags.for_gemms.header, to_header(table));
    print(json_text(to_json(table)) + "\n");
}

/// --emit deepep: settings for the layers of a model.
void execute_for_experts(const AdviseFlags& flags) {
    if (flags.for_gemms.model.empty() || !flags.for_gemms.gemms.empty())
        throw UserError("command line: --emit deepep needs --model, and no --gemms");
    if (!flags.for_gemms.tokens)
        throw UserError("command line: --emit deepep needs --tokens, those of a GPU");
    const ConfigFolder folder = ConfigFolder::standard();
    RunConfig config;
    config.origin = "command line";
    config.topology = flags.topology;
    config.host = flags.host;
    assign_what_ifs(config.what_if, flags.what_if);
    require_several_gpus(flags.topology, folder.topology(flags.topology).gpus());
    print(deepep_settings(flags.for_gemms.model, config, *flags.for_gemms.tokens, folder));
}

void execute_for_trace(const AdviseFlags& flags) {
    TraceFlags trace = flags.trace;
    trace.topology = flags.topology;
    trace.collective = flags.workload.collective;
    print_for_people(advice_on_trace(trace, flags.format, flags.html));
}

void execute(const AdviseFlags& flags) {
    if (!flags.trace.files.empty()) return execute_for_trace(flags);
    if (flags.for_gemms.emit == "deepep") return execute_for_experts(flags);
    if (!flags.for_gemms.model.empty()) throw UserError("command line: --model needs --emit deepep");
    if (!flags.for_gemms.emit.empty() && flags.for_gemms.gemms.empty())
        throw UserError("command line: --emit " + flags.for_gemms.emit + " needs --gemms");
    if (flags.for_gemms.table || !flags.for_gemms.emit.empty()) return execute_for_gemms(flags);
    if (!flags.for_gemms.gemms.empty()) throw UserError("command line: --gemms needs --table or --emit");
    if (flags.trace.tp > 1) throw UserError("command line: --tp needs --trace, --table or --emit");
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
    require_several_gpus(flags.topology, scenario.machine->topology.gpus());
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
    add_topology_flags(*command, flags->topology);
    flags->workload.add_to(*command);
    CLI::Option* trace = command->add_option(
        "--trace", flags->trace.files,
        "Instead of a workload: traces of a run, as sim import reads them. Where its time goes, and what schedules of its "
        "pairs would gain in it");
    for (CLI::Option* option : add_iteration_flags(*command, flags->trace))
        if (option->get_name() != "--tp") option->needs(trace);  // --table has it, too
    command
        ->add_option(
            "--other-topology", flags->trace.other_topologies,
            "With --trace: machines of as many GPUs to compare with, separated by commas; default: the "
            "shipped ones")
        ->delimiter(',')
        ->needs(trace);
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
    CLI::Option* gemms = command->add_option(
        "--gemms", flags->for_gemms.gemms,
        "With --table or --emit: a file {\"gemms\": [{\"name\", \"n\", \"k\", \"dtype\", \"collective\"}]} of one GPU's GEMMs; tokens are their rows");
    CLI::Option* table = command->add_flag(
        "--table", flags->for_gemms.table,
        "Instead of a workload: which schedule to take for each of --gemms, by tokens (1 to 65,536), as JSON");
    CLI::Option* emit =
        command
            ->add_option(
                "--emit", flags->for_gemms.emit,
                "Instead of a workload: settings for --gemms, or --model, to paste into a framework, or that overlap is to be left off")
            ->check(CLI::IsMember(framework_names));
    command
        ->add_option(
            "--tokens", flags->for_gemms.tokens,
            "With --emit te, megatron, nccl or deepep: tokens that settings are for; deepep: of a GPU")
        ->needs(emit)
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
    command
        ->add_option("--model", flags->for_gemms.model,
                     "With --emit deepep: config.json of a model with experts, or a name in configs/models")
        ->needs(emit);
    table->needs(gemms)->excludes(emit);
    command
        ->add_option("--header", flags->for_gemms.header,
                     "With --table: write it also as a C++ header that needs nothing")
        ->needs(table);
    for (const char* other : {"--workload", "--gemm", "--dtype", "--collective", "--order", "--shard-dim",
                              "--top", "--seeds", "--steady"})
        for (CLI::Option* option : {table, emit}) option->excludes(command->get_option(other));
    for (const char* other : {"--agent", "--kernels", "--header"}) emit->excludes(command->get_option(other));
    for (const char* other : {"--workload", "--gemm", "--dtype", "--order", "--shard-dim", "--what-if",
                              "--host", "--steady", "--agent", "--kernels", "--top", "--seeds"})
        trace->excludes(command->get_option(other));

    command->callback([flags] { execute(*flags); });
}

}  // namespace overlap
