#pragma once

#include <catch2/catch.hpp>
#include <vector>

#include "models/costs.hpp"

namespace overlap::test {

/// Requires of the rates of tasks that run together (0: does not run): no resource above its capacity, nobody
/// without a rate, and every task at its top rate or with a bottleneck: a resource that is used up, on which
/// nobody has a larger share for the weight. Returns how many tasks have a bottleneck.
inline int check_allocation(CostView costs, std::span<const double> rates, std::span<const double> capacities,
                            const ResourceTable& resources) {
    struct Use {
        std::size_t task;
        double share, weight;
    };
    std::vector<std::vector<Use>> uses(resources.size());
    std::vector<double> used(resources.size());
    for (std::size_t i = 0; i < costs.size(); ++i) {
        if (rates[i] == 0) continue;
        for (const Demand& demand : costs[i].demands) {
            auto& on = uses[demand.resource];
            const double share = demand.amount * rates[i];
            if (!on.empty() && on.back().task == i)
                on.back().share += share;
            else
                on.push_back({i, share, demand.weight});
            if (resources[demand.resource].limits_each)
                used[demand.resource] = std::max(used[demand.resource], on.back().share);
            else
                used[demand.resource] += share;
        }
    }
    for (ResourceId id = 0; id < resources.size(); ++id) REQUIRE(used[id] <= capacities[id] * (1 + 1e-9));

    std::vector<double> slowest(costs.size());  // 1 at the top rate
    std::vector<bool> has_bottleneck(costs.size());
    for (std::size_t i = 0; i < costs.size(); ++i) slowest[i] = rates[i] * costs[i].body.si();
    for (ResourceId id = 0; id < resources.size(); ++id) {
        double largest = 0;
        for (const Use& use : uses[id]) largest = std::max(largest, use.share / use.weight);
        const bool saturated = used[id] >= capacities[id] * (1 - 1e-9);
        for (const Use& use : uses[id]) {
            slowest[use.task] = std::max(slowest[use.task], use.share / resources[id].capacity);
            const bool own_limit = resources[id].limits_each && use.share >= capacities[id] * (1 - 1e-9);
            if (own_limit || (saturated && use.share / use.weight >= largest * (1 - 1e-9)))
                has_bottleneck[use.task] = true;
        }
    }
    int bound = 0;
    for (std::size_t i = 0; i < costs.size(); ++i) {
        if (rates[i] == 0 || slowest[i] >= 1 - 1e-9) continue;
        REQUIRE(has_bottleneck[i]);
        ++bound;
    }
    return bound;
}

}  // namespace overlap::test
