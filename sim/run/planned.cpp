#include "sim/run/planned.hpp"

#include <algorithm>

#include "models/gemm_model.hpp"
#include "sim/core/shown.hpp"
#include "sim/plan/plan_checks.hpp"
#include "sim/quotient/representatives.hpp"
#include "sim/run/experiment.hpp"
#include "sim/topology/device_losses.hpp"

namespace overlap {
namespace {

template <class Value>
void take(Value& to, const Value& from, const Value& normal) {
    if (to == normal) to = from;
}

/// Whether two workloads are the same, though one may leave out what the other says.
bool same_work(const Json& one, const Json& other, const std::string& origin) {
    if (one == other || !one.is_object() || !other.is_object()) return one == other;
    const auto whole = [&](const Json& json) { return to_json(read_workload({json, origin, "/workload"})); };
    return whole(one) == whole(other);
}

void refuse(const RunConfig& given, const std::string& key) {
    throw UserError(given.origin + ": /" + key + ": stands beside a plan, which says it itself");
}

}  // namespace

RunConfig with_plan(RunConfig given, const Plan& plan) {
    const RunConfig normal;
    const std::string name = schedule_of_plans()->name;
    if (!given.schedule.empty() && given.schedule != name) refuse(given, "schedule");
    if (!given.params.empty()) refuse(given, "params");
    if (!given.schedules.empty()) refuse(given, "schedules");
    const RunConfig own = read_run_config(plan.config, plan.origin + ": /config");
    if (!own.plan.is_null()) throw UserError(one_line(plan.origin + ": /config/plan: a plan has no plan"));
    if (given.workload != normal.workload && !same_work(given.workload, own.workload, given.origin))
        refuse(given, "workload");
    given.schedule = own.schedule.empty() ? name : own.schedule;
    given.params = own.params;
    given.schedules = own.schedules;
    given.workload = own.workload;
    take(given.topology, own.topology, normal.topology);
    take(given.engine, own.engine, normal.engine);
    take(given.seeds, own.seeds, normal.seeds);
    take(given.cost_models, own.cost_models, normal.cost_models);
    take(given.without, own.without, normal.without);
    take(given.host, own.host, normal.host);
    take(given.repeat, own.repeat, normal.repeat);
    Json what_if = own.what_if;
    if (given.what_if.is_object()) {
        what_if.update(given.what_if);
        given.what_if = what_if;
    }
    return given;
}

SchedulePtr schedule_of_plans() {
    static const SchedulePtr entry = [] {
        ScheduleEntry plans;
        plans.name = "plan";
        plans.summary = "The tasks of a plan.";
        plans.handles = [](const Workload&) { return true; };
        // A graph is read, so that none has to be built.
        plans.add_tasks = [](const Workload&, const Topology&, const ScheduleParams&, TaskGraph&) {};
        plans.in_sequence = false;
        return std::make_shared<const ScheduleEntry>(std::move(plans));
    }();
    return entry;
}

Workload unknown_work() {
    return {"plan", "", std::vector<Operator>()};
}

Seconds multiplying_time(const TaskGraph& graph, const Calibration& calibration) {
    std::vector<Seconds> sums(static_cast<std::size_t>(std::max(graph.gpus(), 1)));
    for (TaskId id = 0; id < graph.size(); ++id)
        if (const auto* gemm = std::get_if<GemmShape>(&graph[id].work))
            sums[static_cast<std::size_t>(graph[id].gpu)] +=
                estimate_gemm(*gemm, calibration.gemm_for(gemm->dtype)).body;
    return *std::ranges::max_element(sums);
}

Plan plan_of(const Scenario& scenario) {
    if (scenario.plan != nullptr) {
        Plan same = *scenario.plan;
        Json ran = scenario.config();
        ran.erase("plan");
        same.config.update(ran);
        return same;
    }
    const Topology& topology = scenario.machine->topology;
    Plan plan;
    plan.origin = "plan";
    plan.config = scenario.config();
    plan.gpus = topology.gpus();
    plan.graph = scenario.device_graph();
    try {
        plan.placement = place(plan.graph, *scenario.schedule, scenario.workload, topology, scenario.params);
        require_written(plan);
    } catch (const UserError& reason) {
        plan.placement.reset();
        plan.not_placed = reason.what();
    }
    return plan;
}

Timeline named(Timeline timeline, const Scenario& scenario, const TaskGraph& graph) {
    if (scenario.plan == nullptr || scenario.plan->names.empty()) return timeline;
    const TaskGraph& own = scenario.plan->graph;
    std::vector<std::vector<TaskId>> of_gpu(static_cast<std::size_t>(own.gpus()));
    for (TaskId id = 0; id < own.size(); ++id) of_gpu[static_cast<std::size_t>(own[id].gpu)].push_back(id);
    std::vector<std::size_t> next(of_gpu.size());
    std::vector<Span> spans = timeline.spans();
    for (TaskId id = 0; id < graph.size(); ++id) {
        if (graph[id].kind() == TaskKind::host) continue;
        const auto gpu = static_cast<std::size_t>(graph[id].gpu);
        spans[id].name = scenario.plan->name_of(of_gpu[gpu][next[gpu]++]);
    }
    return Timeline(std::move(spans));
}

bool may_simulate_representatives(const Scenario& scenario) {
    const Topology& topology = scenario.machine->topology;
    // The energy of all GPUs' tasks is another sum than that of representatives, to the last bit.
    return scenario.plan != nullptr && scenario.settings.engine == default_engine &&
           scenario.host == nullptr && scenario.repeat == Repeat::once && topology.gpus() > 1 &&
           !topology.device().energy;
}

AlikeTasks alike_tasks(const Scenario& scenario) {
    const AlikeTasks none{scenario.plan, {}, {}};
    const Machine& machine = *scenario.machine;
    const TaskGraph& whole = scenario.plan->graph;
    const CostModels models(scenario.settings.cost_models);
    const auto price_of = [&](const TaskGraph& graph) {
        return price(graph, scenario.workload, machine, models, effects_of(scenario));
    };
    const Costs costs = price_of(whole);
    if (Races(whole, costs, machine).count() > 0) return none;
    std::optional<Quotient> quotient = quotient_of(whole, costs, machine.topology, machine.resources);
    if (!quotient) return none;
    quotient->graph.name_streams(whole.stream_names());
    const ResourceTable pooled =
        pooled_by(quotient->rotations, quotient->graph, machine.topology, machine.resources);
    if (!is_same(*quotient, quotient->graph, price_of(quotient->graph), pooled)) return none;
    return {scenario.plan, quotient->rotations,
            std::make_shared<const TaskGraph>(std::move(quotient->graph))};
}

}  // namespace overlap
