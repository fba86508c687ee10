#include "sim/run/resolver.hpp"
#include "sim/run/run.hpp"

#include <spdlog/spdlog.h>
#include <iostream>
#include <memory>

#include "sim/commands/commands.hpp"
#include "sim/commands/graph_export.hpp"
#include "sim/commands/progress_reporter.hpp"
#include "sim/commands/workload_flags.hpp"
#include "sim/core/available_memory.hpp"
#include "sim/core/file_kind.hpp"
#include "sim/core/output_file.hpp"
#include "sim/core/shown.hpp"
#include "sim/engine/simgrid_limit.hpp"
#include "sim/report/run/report.hpp"
#include "sim/run/budget.hpp"
#include "sim/run/remarks.hpp"

namespace overlap {
namespace {

const std::string command_line = "command line";

struct RunFlags {
    std::string config, topology, schedule, engine;
    WorkloadFlags workload;
    std::vector<std::string> params, what_if, cost_models, without;
    std::string format = "text";
    std::string trace, graph;
    std::optional<int> seeds;
    bool dry_run = false, allow_large = false;
};

/// "chunks=4" → {"chunks": 4}; a value that is no JSON is text.
void assign(Json& values, const std::string& assignment, const std::string& flag,
            const std::string& expected) {
    const auto equals = assignment.find('=');
    if (equals == std::string::npos || equals == 0)
        throw UserError(command_line + ": " + flag + " is " + in_quotes(assignment) + ", expected " +
                        expected);
    if (!values.is_object()) return;  // from a config file: refused when it is resolved
    const std::string value = valid_utf8(assignment.substr(equals + 1));
    const Json parsed = Json::parse(value, nullptr, false);
    values[valid_utf8(assignment.substr(0, equals))] =
        parsed.is_discarded() || parsed.is_structured() ? Json(value) : parsed;
}

RunConfig config_from(const RunFlags& flags, const ConfigFolder& folder) {
    RunConfig config;
    config.origin = command_line;
    if (!flags.config.empty()) {
        Json json = read_json_file(flags.config);
        require_kind(json, flags.config, FileKind::run_config);
        if (json.is_object()) json.erase("graph");  // so that the output of --dry-run is also a config
        config = read_run_config(json, flags.config);
    }
    const auto replace = [](std::string& value, const std::string& flag) {
        if (!flag.empty()) value = flag;
    };
    replace(config.topology, flags.topology);
    replace(config.schedule, flags.schedule);
    replace(config.engine, flags.engine);
    if (flags.seeds) config.seeds = flags.seeds;
    flags.workload.apply(config, folder);
    for (const std::string& assignment : flags.params)
        assign(config.params, assignment, "--set", "NAME=VALUE, for instance chunks=4");
    for (const std::string& assignment : flags.what_if)
        assign(config.what_if, assignment, "--what-if", "KEY=VALUE, for instance device.dma.peer_engines=4");
    if (!flags.cost_models.empty()) config.cost_models = flags.cost_models;
    if (!flags.without.empty()) config.without = flags.without;
    config.allow_large = flags.allow_large || flags.dry_run;
    return config;
}

/// The graph as JSON with the places of its data, or with the reason why it has none.
Json plan_of(const Scenario& scenario, const TaskGraph& graph) {
    Json json = to_json(graph, scenario.config());
    try {
        add_placement(json, place(graph, *scenario.schedule, scenario.workload, scenario.machine->topology,
                                  scenario.params));
    } catch (const UserError& reason) {
        json["not_placed"] = reason.what();
    }
    return json;
}

/// The resolved config with the run's estimated size, and the reason if it would be refused.
Json dry_run(const Scenario& scenario, const RunBudget& budget) {
    Json json = scenario.config();
    json["graph"] = to_json(budget);
    try {
        require_affordable(budget, available_memory());
    } catch (const UserError& reason) {
        json["graph"]["refused"] = reason.what();
    }
    return json;
}

RunResult run_with_progress(Scenario scenario, const RunBudget& budget) {
    ProgressReporter progress("simulations", static_cast<std::uint64_t>(budget.simulations));
    scenario.simulated = [&progress] { progress.add(); };
    return run(scenario);
}

void execute(const RunFlags& flags) {
    const ConfigFolder folder = ConfigFolder::standard();
    const RunConfig config = config_from(flags, folder);
    const Scenario scenario = resolve(config, folder);
    const RunBudget budget = budget_of(scenario);
    for (const std::string& file : {flags.graph, flags.trace})
        if (!file.empty()) require_writable(file);
    if (!flags.graph.empty()) {
        if (!flags.allow_large) require_affordable(budget, available_memory());
        const TaskGraph graph = scenario.graph();
        const bool dot = flags.graph.ends_with(".dot");
        write_file_atomically(flags.graph, dot ? to_dot(graph) : json_text(plan_of(scenario, graph)) + "\n");
    }
    if (flags.dry_run) return print(json_text(dry_run(scenario, budget), 2) + "\n");
    spdlog::info("simulating {} on {}", scenario.schedule->name, scenario.machine->topology.name());
    const RunResult result = run_with_progress(scenario, budget);
    if (!flags.trace.empty()) write_file_atomically(flags.trace, to_chrome_trace(result));
    const Remarks remarks = Remarker(folder).on(config, scenario, result.makespan);
    for (const std::string& note : remarks.notes) spdlog::warn("{}", note);
    if (flags.format == "json") return print(json_text(to_json(result, remarks)) + "\n");
    if (flags.format == "csv") return print(csv_header() + "\n" + csv_row(to_json(result)) + "\n");
    print(to_text(result, remarks));
}

}  // namespace

void add_run_command(CLI::App& app) {
    auto flags = std::make_shared<RunFlags>();
    app.add_option("--topology", flags->topology, "Machine: a file, or a name in configs/topologies");
    app.add_option("--schedule", flags->schedule, "Overlap schedule (see: sim list)");
    app.add_option("--set", flags->params,
                   "Schedule parameter NAME=VALUE (see: sim explain SCHEDULE); repeatable")
        ->take_all();
    app.add_option(
           "--what-if", flags->what_if,
           "Value of the machine's files in this run, KEY=VALUE: topology.fabric.0.bandwidth_GBps=2x, "
           "device.dma.peer_engines=4; repeatable")
        ->take_all();
    flags->workload.add_to(app);
    app.add_option("--config", flags->config, "Run config (JSON file); flags override it");
    app.add_option("--engine", flags->engine,
                   "Simulation engine; default " + default_engine +
                       ". A simulation by simgrid is stopped after " +
                       std::to_string(static_cast<int>(default_simgrid_seconds)) +
                       " s, or OVERLAP_SIMGRID_SECONDS in the environment");
    app.add_option(
           "--seeds", flags->seeds,
           "Simulations with orders that the machine leaves unspecified: median, p10 and p90; default " +
               std::to_string(default_seeds) + " on such a machine")
        ->check(CLI::Range(1, most_seeds));
    app.add_option("--cost-model", flags->cost_models,
                   "Cost model instead of the default for its kind; repeatable")
        ->take_all();
    app.add_option("--without", flags->without,
                   "Effects to switch off: contention, launch, packing, decomposition")
        ->delimiter(',');
    app.add_option("--format", flags->format, "Output: text, json or csv")
        ->check(CLI::IsMember({"text", "json", "csv"}));
    app.add_option("--trace", flags->trace, "Write a Chrome trace, which ui.perfetto.dev opens");
    app.add_option("--graph", flags->graph, "Write the task graph: FILE.dot, or JSON under any other name");
    app.add_flag("--dry-run", flags->dry_run,
                 "Print the resolved config, the size of the graph, and estimates of memory and time; "
                 "simulate nothing")
        ->excludes("--trace");
    app.add_flag("--allow-large", flags->allow_large,
                 "Run even if the run needs more memory than the machine has left (OVERLAP_MEMORY_GB in "
                 "the environment sets another limit, for every command)");
    app.callback([&app, flags] {
        if (!app.get_subcommands().empty()) return;
        if (flags->topology.empty() && flags->schedule.empty() && flags->config.empty())
            throw CLI::CallForHelp();
        execute(*flags);
    });
}

}  // namespace overlap
