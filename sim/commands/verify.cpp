#include <algorithm>
#include <cmath>
#include <iomanip>
#include <memory>
#include <sstream>

#include "sim/commands/commands.hpp"
#include "sim/commands/progress_reporter.hpp"
#include "sim/run/resolver.hpp"
#include "sim/run/run.hpp"

namespace overlap {
namespace {

struct VerifyFlags {
    std::string config;
    double tolerance = 1e-6;
};

struct Outcome {
    EngineResult simgrid, flow;
    double makespan_error = 0;
    double largest_error = 0;  ///< largest error of a task's end, as a fraction of the makespan
    TaskId first = 0;          ///< earliest task whose error exceeds the tolerance
    bool differs = false;
};

Outcome compare(const Scenario& scenario, double tolerance) {
    const TaskGraph graph = scenario.of_all_gpus().graph();
    const Costs costs = price(graph, scenario.workload, *scenario.machine, CostModels(scenario.cost_models),
                              without(scenario.without));
    ProgressReporter progress("engines", 2);
    Outcome outcome;
    outcome.simgrid = make_engine("simgrid")->run(graph, costs, scenario.machine->resources);
    progress.add();
    outcome.flow = make_engine("flow")->run(graph, costs, scenario.machine->resources);
    const double scale = outcome.simgrid.makespan.si();
    outcome.makespan_error = outcome.flow.makespan.si() / scale - 1;
    for (TaskId id = 0; id < graph.size(); ++id) {
        const double error =
            std::abs(outcome.flow.tasks[id].end.si() - outcome.simgrid.tasks[id].end.si()) / scale;
        outcome.largest_error = std::max(outcome.largest_error, error);
        if (error <= tolerance) continue;
        const bool earlier = outcome.flow.tasks[id].end < outcome.flow.tasks[outcome.first].end;
        if (!outcome.differs || earlier) outcome.first = id;
        outcome.differs = true;
    }
    return outcome;
}

int execute(const VerifyFlags& flags) {
    const ConfigFolder folder = ConfigFolder::standard();
    const Scenario scenario = resolve(read_run_config(read_json_file(flags.config), flags.config), folder);
    const Outcome outcome = compare(scenario, flags.tolerance);
    std::ostringstream out;
    out << std::setprecision(9) << "makespan   simgrid " << to_microseconds(outcome.simgrid.makespan)
        << " us, flow " << to_microseconds(outcome.flow.makespan) << " us, difference "
        << std::setprecision(3) << outcome.makespan_error << '\n'
        << "tasks      " << outcome.flow.tasks.size() << ", largest difference of an end "
        << outcome.largest_error << " of the makespan\n"
        << "wall_ms    simgrid " << outcome.simgrid.wall_ms << ", flow " << outcome.flow.wall_ms << '\n';
    if (!outcome.simgrid.approximation.empty()) out << "note       " << outcome.simgrid.approximation << '\n';
    if (outcome.differs)
        out << "first      " << scenario.graph()[outcome.first].name() << " on GPU "
            << scenario.graph()[outcome.first].gpu << ": simgrid ends it at "
            << to_microseconds(outcome.simgrid.tasks[outcome.first].end) << " us, flow at "
            << to_microseconds(outcome.flow.tasks[outcome.first].end) << " us\n";
    print(out.str());
    return outcome.differs ? 3 : 0;
}

}  // namespace

void add_verify_command(CLI::App& app, int& status) {
    CLI::App* command =
        app.add_subcommand("verify", "Run a config on both engines and print how much they differ");
    auto flags = std::make_shared<VerifyFlags>();
    command->add_option("config", flags->config, "Run config (JSON file)")->required();
    command
        ->add_option("--tolerance", flags->tolerance,
                     "Largest allowed difference between a task's end in one engine and in the other, as a fraction "
                     "of the makespan; exit 3 if it is exceeded")
        ->check(CLI::Range(0.0, 1.0));
    command->callback([flags, &status] { status = execute(*flags); });
}

}  // namespace overlap
