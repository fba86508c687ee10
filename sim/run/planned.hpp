#pragma once

#include "sim/plan/plan.hpp"
#include "sim/run/run_config.hpp"
#include "sim/run/scenario.hpp"

// Runs of plans: what a plan says takes the place of schedule, parameters and workload.
namespace overlap {

/// `given` with what the plan's own config says and `given` does not. Throws UserError if `given` has a schedule,
/// parameters or another workload, which stand in the plan.
RunConfig with_plan(RunConfig given, const Plan& plan);
/// What a plan is run by that is of no schedule.
SchedulePtr schedule_of_plans();
/// A list without operators, for plans that do not say what work they do.
Workload unknown_work();
/// Time of a GPU's GEMMs back to back, of the GPU with most of it.
Seconds multiplying_time(const TaskGraph& graph, const Calibration& calibration);

/// The plan of a scenario, for --graph: its own, or that of its schedule.
Plan plan_of(const Scenario& scenario);

/// The timeline of a run of a plan with the names that the plan gives its tasks. `graph`: of the run, which keeps the
/// order of each GPU's tasks.
Timeline named(Timeline timeline, const Scenario& scenario, const TaskGraph& graph);

/// Who is alike in a plan's graph, and the graph with the tasks of representatives only.
struct AlikeTasks {
    PlanPtr plan;
    std::optional<Rotations> rotations;
    std::shared_ptr<const TaskGraph> representatives;
};
/// Looks for it in the whole graph. A simulation of the representatives is the same, to the bit.
AlikeTasks alike_tasks(const Scenario& scenario);
/// Whether only representatives may be simulated, for runs of which only the numbers are wanted.
bool may_simulate_representatives(const Scenario& scenario);

}  // namespace overlap
