#include "sim/run/baseline.hpp"

#include "sim/run/candidates.hpp"
#include "sim/run/experiment.hpp"
#include "sim/run/steady.hpp"
#include "sim/schedules/operator_list.hpp"
#include "sim/topology/device_library.hpp"

namespace overlap {
namespace {

/// A list's graph without the edges that hold it in sequence.
LeastTimes least_times(const Scenario& scenario, const Experiment& serially) {
    if (scenario.workload.pair() != nullptr) return serially.least_times();
    TaskGraph graph;
    add_operators(scenario.workload, scenario.machine->topology, scenario.whole_params(), false, graph);
    return Experiment(scenario, graph).least_times();
}

std::string library_of(const Scenario& scenario) {
    return short_name(scenario.machine->topology.device().collective_library->name);
}

std::string name_of_serial(const Scenario& scenario) {
    const ScheduleParams params = scenario.whole_params();
    Candidate candidate{"serial", 0, agent_names[static_cast<std::size_t>(params.transfers.agent)],
                        direction_names[static_cast<std::size_t>(params.transfers.direction)], ""};
    if (params.algorithm != ScheduleParams().algorithm) candidate.algorithm = params.algorithm;
    return candidate.name(library_of(scenario));
}

/// Baseline of a plan that says no workload: computation, and then communication.
Baseline apart(const Scenario& scenario) {
    const TaskGraph graph = scenario.graph();
    const Scenario steady = settled(scenario, graph);
    const Experiment own(scenario, graph);
    const Effects effects = effects_of(scenario);
    const auto both = [&](const Experiment& one) {
        return one.computation(effects) + one.communication(effects, 0);
    };
    const Seconds makespan = steady.steady ? both(Experiment(steady, graph)) : both(own);
    return {"computation, then transfers", period_of(steady, graph, makespan), own.computation(effects),
            own.least_times()};
}

}  // namespace

Baseline own_serial(const Scenario& own) {
    if (!own.has_workload()) return apart(own);
    Scenario scenario = own;
    scenario.params.transfers.alike = own.serial_alike;
    const TaskGraph graph = scenario.serial_graph();
    const Experiment experiment(scenario, graph);
    const Effects effects = effects_of(scenario);
    const Scenario steady = settled(scenario, graph);
    const Seconds makespan =
        steady.steady ? Experiment(steady, graph).makespan(effects) : experiment.makespan(effects);
    return {name_of_serial(scenario), period_of(steady, graph, makespan), experiment.computation(effects),
            least_times(scenario, experiment)};
}

Baseline fastest_serial(const Scenario& scenario) {
    if (scenario.serial_alike || !scenario.has_workload()) return own_serial(scenario);
    const Topology& topology = scenario.machine->topology;
    std::vector<Candidate> candidates = candidates_for(scenario.workload, topology);
    append(candidates, library_candidates(scenario.workload, topology));
    std::optional<Baseline> fastest;
    for (const Candidate& candidate : candidates) {
        if (candidate.schedule != "serial") continue;
        try {
            Baseline one = own_serial(with_candidate(scenario, candidate));
            one.name = candidate.name(library_of(scenario));
            if (!fastest) {
                fastest = std::move(one);
                continue;
            }
            const LeastTimes least{std::min(one.least.computation, fastest->least.computation),
                                   std::min(one.least.communication, fastest->least.communication),
                                   std::min(one.least.chain, fastest->least.chain)};
            if (one.makespan < fastest->makespan) fastest = std::move(one);
            fastest->least = least;
        } catch (const UserError&) {  // the library was not measured for this collective
        }
    }
    return fastest ? *fastest : own_serial(scenario);
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

Baselines::Key Baselines::key_of(const Scenario& scenario, ScheduleParams params) {
    return {scenario.machine,
            scenario.host,
            scenario.workload.content,
            std::move(params),
            scenario.settings.engine,
            scenario.settings.seeds,
            scenario.settings.cost_models,
            scenario.settings.without,
            scenario.repeat,
            scenario.has_workload() ? nullptr : scenario.plan};
}

Baseline Baselines::own(const Scenario& scenario) {
    return own_.get(key_of(scenario, scenario.whole_params()), [&] { return own_serial(scenario); });
}

Baseline Baselines::fastest(const Scenario& scenario) {
    // Beyond as many GPUs as fastest_serial tries all ways for, it depends on the scenario's own.
    const ScheduleParams params = scenario.serial_alike ? scenario.whole_params() : ScheduleParams();
    return fastest_.get(key_of(scenario, params), [&] { return fastest_serial(scenario); });
}

}  // namespace overlap
