#include "sim/run/experiment.hpp"

#include <algorithm>
#include <cmath>

#include "sim/core/interruption.hpp"
#include "sim/core/ranges.hpp"
#include "sim/topology/device_dma.hpp"

namespace overlap {
namespace {

std::vector<Seconds> by_class(const Costs& costs, Seconds (*time)(const Cost&, const ResourceTable&),
                              const ResourceTable& resources) {
    return mapped(costs.classes, [&](const Cost& cost) { return time(cost, resources); });
}

/// The reference engine simulates every GPU. What is drawn for each GPU makes them differ. `few`: the quotient's races.
std::optional<Quotient> quotient_for(const Scenario& scenario, const TaskGraph& graph, CostView costs,
                                     const CostModels& models, const Races& races, Races& few) {
    if (scenario.settings.engine != default_engine || scenario.params.transfers.alike || races.open())
        return std::nullopt;
    const Machine& machine = *scenario.machine;
    std::optional<Quotient> quotient = quotient_of(graph, costs, machine.topology, machine.resources);
    if (!quotient || races.count() == 0) return quotient;
    few = Races(quotient->graph,
                overlap::price(quotient->graph, scenario.workload, machine, models, effects_of(scenario),
                               scenario.release()),
                machine);
    const auto orbit = static_cast<std::size_t>(quotient->rotations.of_orbit());
    if (few.count() * orbit != races.count()) return std::nullopt;
    return quotient;
}

std::optional<ResourceTable> pooled_for(const Scenario& scenario, const TaskGraph& graph) {
    const std::optional<Rotations>& alike = scenario.params.transfers.alike;
    if (!alike) return std::nullopt;
    return pooled_by(*alike, graph, scenario.machine->topology, scenario.machine->resources);
}

}  // namespace

Effects effects_of(const Scenario& scenario) {
    Effects effects = without(scenario.settings.without);
    effects.host = effects.host && scenario.repeat == Repeat::once;
    return effects;
}

const Makespans::value_type& quantile(const Makespans& sorted, double share) {
    const auto rank = std::ceil(share * static_cast<double>(sorted.size()));
    return sorted[static_cast<std::size_t>(std::max(rank, 1.0)) - 1];
}

Experiment::Experiment(const Scenario& scenario, const TaskGraph& graph)
    : scenario_(scenario),
      models_(scenario.settings.cost_models),
      costs_(scenario.params.transfers.alike
                 ? Costs()
                 : overlap::price(graph, scenario.workload, *scenario.machine, models_, effects_of(scenario),
                                  scenario.release())),
      races_(scenario.params.transfers.alike ? Races() : Races(graph, costs_, *scenario.machine)),
      pooled_(pooled_for(scenario, graph)),
      quotient_(quotient_for(scenario, graph, costs_, models_, races_, simulated_races_)),
      graph_(quotient_ ? quotient_->graph : graph),
      resources_(pooled_     ? *pooled_
                 : quotient_ ? quotient_->resources
                             : scenario.machine->resources),
      engine_(make_engine(scenario.settings.engine)),
      pricer_(graph_, scenario.workload, *scenario.machine, models_, scenario.release()) {
    if (pooled_) {
        costs_ = price(effects_of(scenario));
        races_ = Races(graph_, costs_, *scenario.machine);
    }
    if (!quotient_) simulated_races_ = races_;
}

std::optional<Rotations> Experiment::rotations() const {
    return quotient_ ? quotient_->rotations : scenario_.params.transfers.alike;
}

int Experiment::simulated_gpus() const {
    const std::optional<Rotations> simulated = rotations();
    return simulated ? simulated->representatives() : scenario_.machine->topology.gpus();
}

bool Experiment::several_orders(CostView costs) const {
    const ResourceTable& resources = scenario_.machine->resources;
    return std::ranges::any_of(costs.classes(), [&](const Cost& cost) {
        return cost.claim && !cost.claim->as_enqueued &&
               resources[cost.claim->resource].order == QueueOrder::unspecified;
    });
}

EngineResult Experiment::run(CostView costs, std::uint64_t seed) const {
    end_if_interrupted();
    EngineResult result = engine_->run(graph_, costs, resources_, seed);
    if (scenario_.simulated) scenario_.simulated();
    return result;
}

Makespans Experiment::makespans(const Effects& effects, std::vector<EngineResult>* results) const {
    Makespans all;
    end_if_interrupted();
    const auto seen = [&](EngineResult result) {
        end_if_interrupted();
        if (scenario_.simulated) scenario_.simulated();
        all.emplace_back(result.makespan, all.size());
        if (results != nullptr) results->push_back(std::move(result));
    };
    const auto seeds = static_cast<std::uint64_t>(scenario_.settings.seeds);
    const Costs undrawn = price(effects), costs = drawn(simulated_races_, undrawn, effects, 0);
    if (simulated_races_.open() && may_race(effects))
        for (std::uint64_t seed = 0; seed < seeds; ++seed)
            seen(engine_->run(graph_, simulated_races_.drawn(undrawn, seed), resources_, seed));
    else if (several_orders(costs))
        engine_->run_seeds(graph_, costs, resources_, seeds, seen);
    else
        seen(engine_->run(graph_, costs, resources_));
    std::ranges::sort(all);
    return all;
}

std::pair<Makespans, EngineResult> Experiment::median_run() const {
    const Effects effects = effects_of(scenario_);
    constexpr std::size_t most_kept = 1'000'000;  // times of tasks, 40 bytes each
    const bool keep =
        graph_.size() * static_cast<std::size_t>(several_orders() ? scenario_.settings.seeds : 1) <=
        most_kept;
    std::vector<EngineResult> results;
    Makespans all = makespans(effects, keep ? &results : nullptr);
    const std::uint64_t seed = quantile(all, 0.5).second;
    EngineResult median = keep ? std::move(results[seed]) : run(price(effects, seed), seed);
    if (quotient_) median.tasks = quotient_->expanded(median.tasks);
    return {std::move(all), std::move(median)};
}

Seconds Experiment::makespan(const Effects& effects) const {
    return quantile(makespans(effects), 0.5).first;
}

RunEnds Experiment::ends(const Effects& effects, std::uint64_t seed) const {
    const EngineResult result = run(price(effects, seed), seed);
    return {result.makespan, end_of_communication(result)};
}

Seconds Experiment::makespan(const Effects& effects, std::uint64_t seed,
                             const std::function<void(const Task&, Cost&)>& change) const {
    Costs costs = price(effects);
    for (std::size_t i = 0; i < costs.classes.size(); ++i)
        change(graph_[pricer_.classes().first[i]], costs.classes[i]);
    return run(drawn(simulated_races_, std::move(costs), effects, seed), seed).makespan;
}

Seconds Experiment::end_of_communication(const EngineResult& result) const {
    Seconds end;
    for (TaskId id = 0; id < graph_.size(); ++id)
        if (is_communication(graph_[id].kind())) end = std::max(end, result.tasks[id].end);
    return end;
}

bool Experiment::communication_is_free() const {
    std::vector<bool> waits(graph_.size());  // whether a task is, or waits for, computation
    for (TaskId id = 0; id < graph_.size(); ++id) {
        bool any = waits[graph_.stream_predecessor(id)];
        graph_.for_each_edge_into(id, [&](const Edge& edge) { any = any || waits[edge.predecessor]; });
        if (any && is_communication(graph_[id].kind())) return false;
        waits[id] = any || is_computation(graph_[id].kind());
    }
    return true;
}

Seconds Experiment::communication(Effects effects, std::uint64_t seed) const {
    effects.computation = effects.host = false;
    return run(price(effects), seed).makespan;
}

Seconds Experiment::computation(const Effects& effects) const {
    std::vector<Seconds> sums(static_cast<std::size_t>(scenario_.machine->topology.gpus()));
    const Costs costs = price(effects);
    const std::vector<Seconds> alone = by_class(costs, isolated_time, scenario_.machine->resources);
    for (TaskId id = 0; id < graph_.size(); ++id) {
        const TaskKind kind = graph_[id].kind();
        if (kind == TaskKind::gemm || kind == TaskKind::memory_bound)
            sums[static_cast<std::size_t>(graph_[id].gpu)] += alone[costs.class_of[id]];
    }
    return *std::ranges::max_element(sums);
}

LeastTimes Experiment::least_times() const {
    return overlap::least_times(graph_, scenario_.workload, price(without(effect_names)), resources_);
}

}  // namespace overlap
