// Which resources cannot limit anybody, so that no level need be found for them.
#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/engine/fair_share.hpp"

namespace overlap {
namespace {

/// By class: a number of tasks that run one at a time. They are of one stream, or of streams of which all tasks claim
/// the same single unit.
std::vector<std::uint32_t> turns_of(CostView costs, const ResourceTable& resources,
                                    std::span<const std::uint32_t> streams) {
    std::vector<std::uint32_t> result(costs.classes().size());
    if (streams.empty()) {
        std::iota(result.begin(), result.end(), 0U);
        return result;
    }
    constexpr std::uint32_t unseen = UINT32_MAX, none = UINT32_MAX - 1;
    const std::uint32_t count = *std::max_element(streams.begin(), streams.end()) + 1;
    std::vector<std::uint32_t> claimed(count, unseen);  // by stream: the pool of the unit
    for (TaskId id = 0; id < streams.size(); ++id) result[costs.class_of(id)] = streams[id];
    for (std::size_t i = 0; i < result.size(); ++i) {
        const std::optional<Claim>& claim = costs.classes()[i].claim;
        const bool single = claim && resources[claim->resource].units == 1;
        const auto pool = single ? static_cast<std::uint32_t>(resources.pool(claim->resource)) : none;
        std::uint32_t& all = claimed[result[i]];
        all = all == unseen || all == pool ? pool : none;
    }
    for (std::uint32_t& turn : result)
        if (claimed[turn] != none) turn = count + claimed[turn];
    return result;
}

/// Tasks turn by turn.
std::vector<FairShare::Index> by_turn(std::span<const std::uint32_t> turns) {
    std::vector<FairShare::Index> order(turns.size());
    std::vector<std::uint32_t> next;
    for (const std::uint32_t turn : turns) {
        next.resize(std::max<std::size_t>(next.size(), turn + 2));
        ++next[turn + 1];
    }
    std::partial_sum(next.begin(), next.end(), next.begin());
    for (std::size_t task = 0; task < order.size(); ++task)
        order[next[turns[task]]++] = static_cast<FairShare::Index>(task);
    return order;
}

/// By pool: the sum over turns, and over the resources of the pool, of the largest value that one task has.
class LargestOfTurns {
public:
    explicit LargestOfTurns(const ResourceTable& resources)
        : sums(resources.pools()), resources_(resources), of_turn_(resources.size()) {}
    void add(std::size_t resource, double value) {
        if (of_turn_[resource] == 0) seen_.push_back(resource);
        of_turn_[resource] = std::max(of_turn_[resource], value);
    }
    void next_turn() {
        for (const std::size_t resource : seen_)
            sums[resources_.pool(resource)] += std::exchange(of_turn_[resource], 0);
        seen_.clear();
    }
    std::vector<double> sums;

private:
    const ResourceTable& resources_;
    std::vector<double> of_turn_;
    std::vector<std::size_t> seen_;
};

}  // namespace

FairShare::Bounds FairShare::bounds(CostView costs, std::span<const std::uint32_t> streams) const {
    LargestOfTurns drawn(resources_), weights(resources_), held(resources_);
    std::vector<double> by_one(pools_.size());
    const std::vector<std::uint32_t> turns = turns_of(costs, resources_, streams);
    const std::vector<Index> order = by_turn(turns);
    for (std::size_t i = 0; i < order.size(); ++i) {
        const Index task = order[i];
        for (const Use& use : uses(tasks_[task])) {
            const double rate = use.amount * tasks_[task].top;
            drawn.add(use.resource, rate);
            weights.add(use.resource, use.weight);
            double& most = by_one[resources_.pool(use.resource)];
            most = std::max(most, rate);
        }
        for (const Hold& hold : costs.classes()[task].holds) held.add(hold.resource, hold.units);
        if (i + 1 < order.size() && turns[task] == turns[order[i + 1]]) continue;
        drawn.next_turn();
        weights.next_turn();
        held.next_turn();
    }
    Bounds result{std::vector<char>(pools_.size()), std::vector<double>(pools_.size())};
    for (std::size_t r = 0; r < pools_.size(); ++r) {
        const Pool& pool = pools_[r];
        const double most = pool.limits_each ? by_one[r] : drawn.sums[r];
        result.ample[r] = most <= (pool.nominal - held.sums[r]) * (1 + settled);
        // An even share. The level is higher where some want less.
        if (!pool.limits_each && held.sums[r] == 0) result.least_level[r] = pool.nominal / weights.sums[r];
    }
    const std::vector<bool> in_series = follow_another();
    std::vector<bool> first(pools_.size());  // has a resource that does not
    for (ResourceId r = 0; r < resources_.size(); ++r)
        if (!in_series[r]) first[resources_.pool(r)] = true;
    for (std::size_t r = 0; r < pools_.size(); ++r)
        if (!first[r] && held.sums[r] == 0) result.ample[r] = true;
    return result;
}

std::vector<bool> FairShare::follow_another() const {
    constexpr Index unseen = UINT32_MAX, none = UINT32_MAX - 1;
    std::vector<Index> before(resources_.size(), unseen), after = before;
    const auto add = [](Index& all, Index one) { all = all == unseen || all == one ? one : none; };
    for (const Task& task : tasks_) {
        const Use* last = nullptr;
        for (const Use& use : uses(task)) {
            const bool alike = last != nullptr && last->amount == use.amount && last->weight == use.weight &&
                               resources_[last->resource].capacity == resources_[use.resource].capacity &&
                               !resources_[last->resource].limits_each;
            add(before[use.resource], alike ? last->resource : none);
            if (last != nullptr) add(after[last->resource], alike ? use.resource : none);
            last = &use;
        }
        if (last != nullptr) add(after[last->resource], none);
    }
    std::vector<bool> result(resources_.size());
    for (ResourceId r = 0; r < resources_.size(); ++r)
        result[r] = before[r] == unseen || (before[r] != none && after[before[r]] == r);
    return result;
}

}  // namespace overlap
