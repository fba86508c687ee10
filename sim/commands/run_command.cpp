#include "sim/run/resolver.hpp"
#include "sim/run/run.hpp"

#include <spdlog/spdlog.h>
#include <memory>

#include "sim/commands/commands.hpp"
#include "sim/commands/progress_reporter.hpp"
#include "sim/commands/scenario_flags.hpp"
#include "sim/commands/terminal.hpp"
#include "sim/core/archive.hpp"
#include "sim/core/available_memory.hpp"
#include "sim/core/output_file.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/report/run/report.hpp"
#include "sim/run/budget.hpp"
#include "sim/run/remarks.hpp"

namespace overlap {
namespace {

struct RunFlags {
    ScenarioFlags scenario;
    std::string format = "text";
    std::string trace, graph;
    bool dry_run = false, allow_large = false;
};

/// The resolved config with the run's estimated size, and the reason if it would be refused.
Json dry_run(const Scenario& scenario) {
    const Bytes available = available_memory();
    const RunBudget budget = budget_of(scenario, available);
    Json json = scenario.config();
    json["graph"] = to_json(budget);
    if (!scenario.whole_pairs.empty()) json["graph"]["note"] = scenario.whole_pairs;
    try {
        require_affordable(budget, available);
    } catch (const UserError& reason) {
        json["graph"]["refused"] = reason.what();
    }
    return json;
}

/// What --graph writes: by the end of the file's name.
std::string graph_text(const Scenario& scenario, const std::string& file) {
    if (file.ends_with(".dot")) return to_dot(scenario.graph());
    const std::string text = json_text(to_json(plan_of(scenario))) + "\n";
    return file.ends_with(".gz") ? compressed(text) : text;
}

RunResult run_with_progress(Scenario scenario, const RunOptions& options) {
    ProgressReporter progress("simulations", static_cast<std::uint64_t>(most_simulations(scenario)));
    scenario.simulated = progress.counter();
    return run(scenario, options);
}

void execute(const RunFlags& flags) {
    const ConfigFolder folder = ConfigFolder::standard();
    Resolver resolver(folder);
    RunConfig config = resolver.with_machine(flags.scenario.config(folder));
    config.allow_large = flags.allow_large || flags.dry_run;
    // Only files show more GPUs than the first, which is a representative.
    const bool whole = flags.dry_run || !flags.trace.empty() || !flags.graph.empty();
    const Scenario scenario = whole ? resolver.resolve(config) : resolver.resolve_for_numbers(config);
    require_outputs(std::vector<std::filesystem::path>{flags.graph, flags.trace});
    if (!flags.graph.empty()) {
        const Scenario all = scenario.of_all_gpus();
        const Bytes available = available_memory();
        if (!flags.allow_large) require_affordable(budget_of(all, available), available);
        write_file_atomically(flags.graph, graph_text(all, flags.graph));
    }
    if (flags.dry_run) return print(json_text(dry_run(scenario), 2) + "\n");
    spdlog::info("simulating {} on {}", scenario.schedule->name, scenario.machine->topology.name());
    const bool record = flags.format == "text" || !flags.trace.empty();
    const RunResult result = run_with_progress(scenario, {.record = record});
    if (!flags.trace.empty()) {
        const PageOrigin origin = page_origin();
        write_file_atomically(
            flags.trace, to_chrome_trace(result, {{"version", origin.version}, {"command", origin.command}}));
    }
    Remarker remarker(folder);
    Remarks remarks = remarker.on(config, scenario, result.makespan);
    for (const std::string& note : remarks.notes) spdlog::warn("{}", note);
    append(remarks.notes, remarker.on_result(config, scenario, result));
    if (flags.format == "json") return print(json_text(to_json(result, remarks)) + "\n");
    if (flags.format == "csv") return print(csv_header() + "\n" + csv_row(to_json(result, remarks)) + "\n");
    print_for_people(to_text(result, remarks));
}

}  // namespace

void add_run_command(CLI::App& app) {
    auto flags = std::make_shared<RunFlags>();
    flags->scenario.add_to(app);
    add_format_flag(app, flags->format);
    app.add_option("--trace", flags->trace, "Write a Chrome trace, which ui.perfetto.dev opens");
    app.add_option(
        "--graph", flags->graph,
        "Write the task graph: FILE.dot, or a plan (see: sim schema plan), compressed as FILE.gz; --plan reads it");
    app.add_flag("--dry-run", flags->dry_run,
                 "Print the resolved config, the size of the graph, and estimates of memory and time; "
                 "simulate nothing")
        ->excludes("--trace");
    app.add_flag("--allow-large", flags->allow_large,
                 "Run even if the run needs more memory than the machine has left (OVERLAP_MEMORY_GB in "
                 "the environment sets another limit, for every command)");
    app.callback([&app, flags] {
        if (!app.get_subcommands().empty()) return;
        if (flags->scenario.is_empty()) throw CLI::CallForHelp();
        execute(*flags);
    });
}

}  // namespace overlap
