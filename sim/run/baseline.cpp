#include "sim/run/baseline.hpp"

#include "sim/run/experiment.hpp"
#include "sim/run/steady.hpp"

namespace overlap {
namespace {

const ScheduleEntry& serial() {
    static const ScheduleEntry& entry = find_schedule("serial");
    return entry;
}

std::string key_of(const Scenario& scenario) {
    const Json key{reinterpret_cast<std::uintptr_t>(scenario.machine.get()),
                   to_json(scenario.workload),
                   to_json(scenario.whole_params(), serial().parameters),
                   scenario.engine,
                   scenario.seeds,
                   scenario.cost_models,
                   scenario.without,
                   reinterpret_cast<std::uintptr_t>(scenario.host.get()),
                   scenario.repeat};
    return key.dump();
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
            experiment.least_times().communication};
}

Baseline Baselines::get(const Scenario& scenario) {
    return kept_
        .get(key_of(scenario),
             [&] {
                 return Kept{baseline_of(scenario), scenario.machine, scenario.host};
             })
        .baseline;
}

}  // namespace overlap
