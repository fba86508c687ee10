// Which resources cannot limit anybody, so that no level need be found for them.
#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/engine/fair_share.hpp"

namespace overlap {
namespace {

/// Numbers tasks' classes so that those of one number run one at a time: on one stream, or on streams whose tasks claim
/// the same single unit.
std::vector<std::uint32_t> rotations_of(CostView costs, const ResourceTable& resources,
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

/// Tasks turn by rotation.
std::vector<FairShare::Index> by_turn(std::span<const std::uint32_t> rotations) {
    std::vector<FairShare::Index> order(rotations.size());
    std::vector<std::uint32_t> next(
        rotations.empty() ? 0 : *std::max_element(rotations.begin(), rotations.end()) + 2);
    for (const std::uint32_t turn : rotations) ++next[turn + 1];
    std::partial_sum(next.begin(), next.end(), next.begin());
    for (std::size_t task = 0; task < order.size(); ++task)
        order[next[rotations[task]]++] = static_cast<FairShare::Index>(task);
    return order;
}

/// Of a resource or a pool.
struct Most {
    double drawn = 0, weight = 0, held = 0;
};

/// Sums for each pool, over rotations and over the resources of the pool, of the most that one task has.
class MostOfTurns {
public:
    explicit MostOfTurns(const ResourceTable& resources)
        : sums(resources.pools()), resources_(resources), of_turn_(resources.size()) {}
    void add(std::size_t resource, const Most& task) {
        Most& turn = of_turn_[resource];
        if (turn.weight + turn.held == 0) seen_.push_back(resource);
        turn = {std::max(turn.drawn, task.drawn), std::max(turn.weight, task.weight),
                std::max(turn.held, task.held)};
    }
    void next_turn() {
        for (const std::size_t resource : seen_) {
            const Most turn = std::exchange(of_turn_[resource], {});
            Most& sum = sums[resources_.pool(resource)];
            sum = {sum.drawn + turn.drawn, sum.weight + turn.weight, sum.held + turn.held};
        }
        seen_.clear();
    }
    std::vector<Most> sums;

private:
    const ResourceTable& resources_;
    std::vector<Most> of_turn_;
    std::vector<std::size_t> seen_;
};

}  // namespace

FairShare::Bounds FairShare::bounds(CostView costs, std::span<const std::uint32_t> streams) const {
    MostOfTurns most(resources_);
    std::vector<double> by_one(pools_.size());
    const std::vector<std::uint32_t> rotations = rotations_of(costs, resources_, streams);
    const std::vector<Index> order = by_turn(rotations);
    for (std::size_t i = 0; i < order.size(); ++i) {
        const Index task = order[i];
        for (const Use& use : uses(tasks_[task])) {
            const double rate = use.amount * tasks_[task].top;
            most.add(use.resource, {rate, use.weight, 0});
            double& largest = by_one[resources_.pool(use.resource)];
            largest = std::max(largest, rate);
        }
        for (const Hold& hold : costs.classes()[task].holds) most.add(hold.resource, {0, 0, hold.units});
        if (i + 1 == order.size() || rotations[task] != rotations[order[i + 1]]) most.next_turn();
    }
    Bounds result{std::vector<char>(pools_.size()), std::vector<double>(pools_.size())};
    bool all_ample = true;
    for (std::size_t r = 0; r < pools_.size(); ++r) {
        const Pool& pool = pools_[r];
        const Most& sum = most.sums[r];
        const double drawn = pool.limits_each ? by_one[r] : sum.drawn;
        result.ample[r] = drawn <= (pool.nominal - sum.held) * (1 + settled);
        // An even share. The level is higher where some want less.
        if (!pool.limits_each && sum.held == 0) result.least_level[r] = pool.nominal / sum.weight;
        all_ample = all_ample && result.ample[r];
    }
    if (all_ample) return result;
    const std::vector<char> led = lead_others();
    for (std::size_t r = 0; r < pools_.size(); ++r)
        if (!led[r] && most.sums[r].held == 0) result.ample[r] = true;
    return result;
}

std::vector<char> FairShare::lead_others() const {
    constexpr Index unseen = UINT32_MAX, none = UINT32_MAX - 1;
    struct Neighbours {
        Index before = unseen, after = unseen;
    };
    std::vector<Neighbours> neighbours(resources_.size());
    const auto add = [](Index& all, Index one) { all = all == unseen || all == one ? one : none; };
    for (const Task& task : tasks_) {
        const Use* last = nullptr;
        for (const Use& use : uses(task)) {
            const bool alike = last != nullptr && last->amount == use.amount && last->weight == use.weight &&
                               resources_[last->resource].capacity == resources_[use.resource].capacity &&
                               !resources_[last->resource].limits_each;
            add(neighbours[use.resource].before, alike ? last->resource : none);
            if (last != nullptr) add(neighbours[last->resource].after, alike ? use.resource : none);
            last = &use;
        }
        if (last != nullptr) add(neighbours[last->resource].after, none);
    }
    std::vector<char> result(pools_.size());
    for (const Use& use : uses_) {
        const Index before = neighbours[use.resource].before;
        if (before == none || neighbours[before].after != use.resource)
            result[resources_.pool(use.resource)] = true;
    }
    return result;
}

// Removes the uses of resources that cannot limit anybody, and gives the other resources their rotations.
void FairShare::apply(const Bounds& bounds) {
    // The first and the last place that each pool has among the uses of a task.
    std::vector<std::pair<Index, Index>> first_and_last(pools_.size(), {most_turns, 0});
    Index kept = 0;
    for (Task& task : tasks_) {
        const Index first = kept;
        task.steady = true;
        for (Index number = task.first_use; number < task.last_use; ++number) {
            Use use = uses_[number];
            use.resource = static_cast<Index>(resources_.pool(use.resource));
            if (bounds.ample[use.resource]) continue;
            auto& [earliest, latest] = first_and_last[use.resource];
            earliest = std::min(earliest, kept - first);
            latest = std::max(latest, kept - first);
            uses_[kept++] = use;
            ++pools_[use.resource].last_user;
            task.steady = task.steady && task.alone < bounds.least_level[use.resource] * use.speed * clearly;
        }
        task.first_use = first;
        task.last_use = kept;
    }
    uses_.resize(kept);
    users_.resize(kept);
    places_.resize(kept);
    for (Index first = 0, number = 0; Pool & pool : pools_) {
        const auto [earliest, latest] = first_and_last[number++];
        pool.turn = static_cast<std::uint8_t>(std::min(most_turns - 1, earliest + latest));
        const Index space = pool.last_user;
        pool.first_user = pool.last_user = first;
        first += space;
    }
    alike_weights_ = std::all_of(uses_.begin(), uses_.end(), [](const Use& use) { return use.weight == 1; });
}

}  // namespace overlap
