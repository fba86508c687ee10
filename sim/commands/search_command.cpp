#include <spdlog/spdlog.h>
#include <memory>

#include "sim/commands/commands.hpp"
#include "sim/commands/progress_reporter.hpp"
#include "sim/commands/scenario_flags.hpp"
#include "sim/commands/terminal.hpp"
#include "sim/core/archive.hpp"
#include "sim/core/output_file.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/run/remarks.hpp"
#include "sim/run/resolver.hpp"
#include "sim/run/run.hpp"
#include "sim/search/search.hpp"

namespace overlap {
namespace {

struct SearchFlags {
    WorkloadFlags workload;
    std::string topology, host, save, format = "text", kernels = "library", executable = "any";
    std::vector<std::string> agents, what_if, free{"sizes", "merging", "order", "streams"};
    bool steady = false;
    std::uint64_t staging = 0;
    SearchOptions options;
};

void execute(const SearchFlags& flags) {
    const ConfigFolder folder = ConfigFolder::standard();
    RunConfig config;
    config.origin = "command line";
    config.topology = flags.topology;
    config.schedule = "serial";  // only for resolving
    config.host = flags.host;
    flags.workload.apply(config, folder);
    assign_what_ifs(config.what_if, flags.what_if);
    if (!flags.save.empty()) require_writable(flags.save);
    const Scenario scenario = resolve(config, folder);
    if (scenario.machine->topology.gpus() < 2)
        throw UserError("command line: --topology " + flags.topology + " has one GPU, nothing to overlap");
    SearchOptions options = flags.options;
    options.executable = flags.executable == "replay";
    options.allowed = {flags.agents, flags.kernels == "any" && !options.executable};
    if (flags.staging > 0) options.staging = Bytes(static_cast<double>(flags.staging));
    for (const std::string& one : flags.free)
        options.free.push_back(static_cast<SearchDimension>(known_place(
            one, dimension_names, "command line: --vary: " + in_quotes(one) + " is no dimension")));
    constexpr std::uint64_t most_simulated = 10'000;
    const SearchResult result =
        search(scenario, folder, options, ProgressReporter("schedules", most_simulated).counter());
    for (const std::string& note : Remarker(folder).on(config, scenario, makespan_of(scenario)).notes)
        spdlog::warn("{}", note);
    if (!flags.save.empty()) {
        const std::string text = json_text(to_json(result.plan)) + "\n";
        write_file_atomically(flags.save, flags.save.ends_with(".gz") ? compressed(text) : text);
    }
    if (flags.format == "json") return print(json_text(to_json(result)) + "\n");
    print_for_people(to_text(result));
}

}  // namespace

void add_search_command(CLI::App& app) {
    CLI::App* command = app.add_subcommand(
        "search", "Search a schedule for a pair that is faster than all listed ones, as a plan");
    auto flags = std::make_shared<SearchFlags>();
    add_topology_flags(*command, flags->topology)->required();
    flags->workload.add_to(*command);
    command->add_option("--save", flags->save,
                        "Write the schedule's plan, which --plan and replay read; compressed as FILE.gz");
    command->add_option("--budget", flags->options.budget, "Seconds after which the search ends; default 8")
        ->check(CLI::Range(0.0, 86400.0));
    command->add_option("--seed", flags->options.seed, "Another seed searches another way; default 0");
    command
        ->add_option(
            "--draws", flags->options.draws,
            "Draws of the machine's constants within their errors that a gain must survive; default 1000")
        ->check(CLI::Range(20, 1'000'000));
    command->add_option("--agent", flags->agents, "Only copies by dma, or by cu; repeatable")
        ->check(CLI::IsMember({"dma", "cu"}))
        ->take_all();
    command
        ->add_option("--kernels", flags->kernels,
                     "any: also listed schedules whose GEMM is a kernel of one's own; default library")
        ->check(CLI::IsMember({"library", "any"}));
    command
        ->add_option(
            "--executable", flags->executable,
            "replay: only schedules that it executes: one GEMM stream, no masks of compute units; default any")
        ->check(CLI::IsMember({"any", "replay"}));
    command
        ->add_option("--staging", flags->staging,
                     "Most memory for stages and partial results on a GPU, in bytes or as 64MiB")
        ->transform(CLI::AsSizeValue(false));
    command
        ->add_option(
            "--vary", flags->free,
            "What may change, all else stays as in a listed schedule: sizes, merging, order, streams (default: these); also agent "
            "(copy kernels), direction, units (masks of compute units) and second_gemm_stream, whose prices are less sure")
        ->delimiter(',');
    add_what_if_flag(*command, flags->what_if);
    command->add_option("--host", flags->host, "Who enqueues: a file, or a name in configs/hosts");
    command->add_option("--format", flags->format, "Output: text or json")
        ->check(CLI::IsMember({"text", "json"}));
    command->callback([flags] { execute(*flags); });
}

}  // namespace overlap
