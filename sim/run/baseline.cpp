#include "sim/run/baseline.hpp"

#include "sim/run/experiment.hpp"
#include "sim/run/steady.hpp"
#include "sim/schedules/operator_list.hpp"

namespace overlap {
namespace {

const ScheduleEntry& serial() {
    static const ScheduleEntry& entry = find_schedule("serial");
    return entry;
}

/// Of a list without the edges that hold it in sequence.
LeastTimes least_times(const Scenario& scenario, const Experiment& serially) {
    if (scenario.workload.pair() != nullptr) return serially.least_times();
    const TaskGraph graph =
        build_operators(scenario.workload, scenario.machine->topology, scenario.whole_params(), false);
    return Experiment(scenario, graph).least_times();
}

}  // namespace

Baseline baseline_of(const Scenario& own) {
    Scenario scenario = own;
    scenario.params.transfers.alike = own.serial_alike;
    const TaskGraph graph = scenario.as_enqueued(
        serial().make()->build(scenario.workload, scenario.machine->topology, scenario.whole_params()),
        serial().name);
    const Experiment experiment(scenario, graph);
    const Effects effects = effects_of(scenario);
    const Scenario steady = settled(scenario, graph);
    const Seconds makespan =
        steady.steady ? Experiment(steady, graph).makespan(effects) : experiment.makespan(effects);
    return {period_of(steady, graph, makespan), experiment.computation(effects),
            least_times(scenario, experiment)};
}

std::size_t Baselines::Hash::operator()(const Key& key) const {
    std::size_t hash = std::hash<const Machine*>()(key.machine.get());
    const auto add = [&](std::size_t number) { hash = hash * 31 + number; };
    add(static_cast<std::size_t>(key.params.transfers.agent));
    add(static_cast<std::size_t>(key.params.transfers.cus));
    add(key.work.index());
    if (const Pair* pair = std::get_if<Pair>(&key.work)) {
        add(static_cast<std::size_t>(pair->gemm.m));
        add(static_cast<std::size_t>(pair->gemm.n));
        add(static_cast<std::size_t>(pair->gemm.k));
    }
    return hash;
}

Baseline Baselines::get(const Scenario& scenario) {
    return kept_.get({scenario.machine, scenario.host, scenario.workload.content, scenario.whole_params(),
                      scenario.engine, scenario.seeds, scenario.cost_models, scenario.without, scenario.repeat},
                     [&] { return baseline_of(scenario); });
}

}  // namespace overlap
