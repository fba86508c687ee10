#include "sim/experiment.hpp"

#include <algorithm>
#include <cmath>

namespace overlap {

const Makespans::value_type& quantile(const Makespans& sorted, double share) {
    const auto rank = std::ceil(share * static_cast<double>(sorted.size()));
    return sorted[static_cast<std::size_t>(std::max(rank, 1.0)) - 1];
}

Experiment::Experiment(const Scenario& scenario, const TaskGraph& graph)
    : scenario_(scenario),
      graph_(graph),
      engine_(make_engine(scenario.engine)),
      pricer_(graph, scenario.workload, *scenario.machine, CostModels(scenario.cost_models)) {}

bool Experiment::several_orders(std::span<const Cost> costs) const {
    const ResourceTable& resources = scenario_.machine->resources;
    return std::any_of(costs.begin(), costs.end(), [&](const Cost& cost) {
        return cost.claim && !cost.claim->as_enqueued &&
               resources[cost.claim->resource].order == QueueOrder::unspecified;
    });
}

EngineResult Experiment::run(std::span<const Cost> costs, std::uint64_t seed) const {
    return engine_->run(graph_, costs, scenario_.machine->resources, seed);
}

Makespans Experiment::makespans(std::span<const Cost> costs) const {
    Makespans result;
    const int seeds = several_orders(costs) ? scenario_.seeds : 1;
    for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(seeds); ++seed)
        result.emplace_back(run(costs, seed).makespan, seed);
    std::sort(result.begin(), result.end());
    return result;
}

std::pair<Makespans, EngineResult> Experiment::median_run(std::span<const Cost> costs) const {
    if (!several_orders(costs)) {
        EngineResult only = run(costs, 0);
        return {{{only.makespan, 0}}, std::move(only)};
    }
    Makespans all = makespans(costs);
    const std::uint64_t median = quantile(all, 0.5).second;
    return {std::move(all), run(costs, median)};
}

Seconds Experiment::makespan(const Effects& effects) const {
    return quantile(makespans(price(effects)), 0.5).first;
}

Seconds Experiment::communication(Effects effects) const {
    effects.computation = false;
    return makespan(effects);
}

Seconds Experiment::computation(const Effects& effects) const {
    std::vector<Seconds> sums(static_cast<std::size_t>(scenario_.machine->topology.gpus()));
    const std::vector<Cost> costs = price(effects);
    for (TaskId id = 0; id < graph_.size(); ++id) {
        const TaskKind kind = graph_[id].kind();
        if (kind == TaskKind::gemm || kind == TaskKind::memory_bound)
            sums[static_cast<std::size_t>(graph_[id].gpu)] +=
                isolated_time(costs[id], scenario_.machine->resources);
    }
    return *std::max_element(sums.begin(), sums.end());
}

}  // namespace overlap
