#include "sim/engine/fair_share.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

namespace overlap {
namespace {

constexpr double settled = 1e-13;
// Levels that still move after so many fills do so by less than the error of the costs.
constexpr std::size_t most_fills = 10'000'000;
constexpr int fills_before_damping = 50;

}  // namespace

FairShare::FairShare(std::span<const Cost> costs, const ResourceTable& resources)
    : tasks_(costs.size()), pools_(resources.size()) {
    for (std::size_t r = 0; r < resources.size(); ++r)
        pools_[r].capacity = pools_[r].nominal = resources[r].capacity;
    for (std::size_t r = 0; r < resources.size(); ++r) pools_[r].limits_each = resources[r].limits_each;
    std::vector<Use> merged;
    for (std::size_t t = 0; t < costs.size(); ++t) {
        merged.clear();
        for (const Demand& demand : costs[t].demands) {
            if (demand.amount <= 0) continue;
            const double weight = pools_[demand.resource].limits_each ? 1 : demand.weight;
            merged.push_back({static_cast<Index>(demand.resource), demand.amount / weight, demand.amount});
        }
        std::sort(merged.begin(), merged.end(),
                  [](const Use& a, const Use& b) { return a.resource < b.resource; });
        Task& task = tasks_[t];
        task.first_use = static_cast<Index>(uses_.size());
        double body = costs[t].body.si();
        for (std::size_t i = 0; i < merged.size(); ++i) {
            if (i > 0 && merged[i].resource == merged[i - 1].resource) {
                uses_.back().amount += merged[i].amount;
                uses_.back().pull += merged[i].pull;
            } else {
                uses_.push_back(merged[i]);
            }
        }
        task.last_use = static_cast<Index>(uses_.size());
        for (const Use& use : uses(task)) body = std::max(body, use.amount / pools_[use.resource].nominal);
        task.top = body > 0 ? 1.0 / body : unlimited;
    }
}

void FairShare::refill_later(Index resource) {
    if (!std::exchange(pools_[resource].waits, true)) waiting_.push_back(resource);
}

void FairShare::mark_changed(Index task) {
    if (!std::exchange(tasks_[task].changed, true)) changed_.push_back(task);
}

void FairShare::start(Index id) {
    Task& task = tasks_[id];
    task.running = true;
    for (const Use& use : uses(task)) {
        pools_[use.resource].users.push_back(id);
        pools_[use.resource].uses.push_back(use);
        update_contended(use.resource);
    }
    mark_changed(id);
}

void FairShare::stop(Index id) {
    Task& task = tasks_[id];
    task.running = false;
    task.rate = 0;
    for (const Use& use : uses(task)) {
        Pool& pool = pools_[use.resource];
        const auto at = std::find(pool.users.begin(), pool.users.end(), id) - pool.users.begin();
        pool.users.erase(pool.users.begin() + at);
        pool.uses.erase(pool.uses.begin() + at);
        update_contended(use.resource);
    }
}

void FairShare::hold(const Hold& hold) {
    Pool& pool = pools_[hold.resource];
    if (hold.adds_up)
        pool.held += hold.units;
    else
        pool.largest_holds.push_back(hold.units);
    update_capacity(static_cast<Index>(hold.resource));
}

void FairShare::give_back(const Hold& hold) {
    Pool& pool = pools_[hold.resource];
    if (hold.adds_up)
        pool.held -= hold.units;
    else
        pool.largest_holds.erase(std::find(pool.largest_holds.begin(), pool.largest_holds.end(), hold.units));
    update_capacity(static_cast<Index>(hold.resource));
}

void FairShare::update_capacity(Index resource) {
    Pool& pool = pools_[resource];
    double held = pool.held;
    if (!pool.largest_holds.empty())
        held += *std::max_element(pool.largest_holds.begin(), pool.largest_holds.end());
    pool.capacity = std::max(pool.nominal - held, least_capacity(pool.nominal));
    update_contended(resource);
}

// Summed anew each time: a running sum would drift.
void FairShare::update_contended(Index resource) {
    Pool& pool = pools_[resource];
    double wanted = 0;
    for (std::size_t i = 0; i < pool.users.size(); ++i) {
        const double alone = pool.uses[i].amount * tasks_[pool.users[i]].top;
        wanted = pool.limits_each ? std::max(wanted, alone) : wanted + alone;
    }
    pool.contended = wanted > pool.capacity * (1 + settled);
    if (pool.contended || pool.level < unlimited) refill_later(resource);
}

double FairShare::limit_without(const Task& task, Index resource) const {
    double limit = task.top;
    for (const Use& use : uses(task))
        if (use.resource != resource) limit = std::min(limit, pools_[use.resource].level / use.pull);
    return limit;
}

// Water-filling: the level at which shares min(wanted, level * weight) use the resource up. Where it is not
// short, `unlimited`, and in `open` the level that its largest user could have.
double FairShare::water_level(Index resource, double& open) {
    const Pool& pool = pools_[resource];
    if (pool.limits_each) return open = pool.capacity;
    wanted_.clear();
    double weights = 0;
    for (std::size_t i = 0; i < pool.users.size(); ++i) {
        const double rate = limit_without(tasks_[pool.users[i]], resource);
        const Use& use = pool.uses[i];
        wanted_.push_back({use.pull * rate, use.amount * rate, use.amount / use.pull});
        weights += wanted_.back().weight;
    }
    std::sort(wanted_.begin(), wanted_.end(),
              [](const Wanted& a, const Wanted& b) { return a.level < b.level; });
    double left = pool.capacity;
    for (const Wanted& wanted : wanted_) {
        open = left / weights;
        // Just as much as there is counts as limited here, too: of links in series with the same users all
        // keep the level, or it would pass from one to the next for ever.
        if (wanted.level >= open * (1 - settled)) return open;
        left -= wanted.amount;
        weights -= wanted.weight;
    }
    return unlimited;
}

// True if the level of the resource has moved. Levels that chase each other round a circle of resources,
// which weights make possible, go half of their way.
bool FairShare::fill(Index resource) {
    Pool& pool = pools_[resource];
    if (!pool.contended) return std::exchange(pool.level, unlimited) < unlimited;
    double open = unlimited;
    double level = water_level(resource, open);
    const double before = pool.level;
    if (++pool.fills > fills_before_damping && !pool.limits_each)
        level = before < unlimited ? (before + open) / 2 : open;
    pool.level = level;
    return before != level && !(std::abs(before - level) <= settled * std::min(before, level));
}

std::span<const FairShare::Index> FairShare::resolve() {
    for (std::size_t i = 0; i < waiting_.size() && i < most_fills; ++i) {
        const Index resource = waiting_[i];
        Pool& pool = pools_[resource];
        pool.waits = false;
        if (!fill(resource)) continue;
        if (pool.fills > fills_before_damping) refill_later(resource);  // it has gone half of its way
        for (const Index user : pool.users) {
            mark_changed(user);
            for (const Use& use : uses(tasks_[user]))
                if (use.resource != resource && pools_[use.resource].contended) refill_later(use.resource);
        }
    }
    for (const Index resource : waiting_) {
        pools_[resource].waits = false;
        pools_[resource].fills = 0;
    }
    waiting_.clear();

    // Of the tasks marked, those that run and whose rate is new stay in the result.
    result_.clear();
    for (const Index id : changed_) {
        Task& task = tasks_[id];
        task.changed = false;
        if (!task.running) continue;
        const double rate = limit_without(task, std::numeric_limits<Index>::max());
        if (rate == task.rate) continue;
        task.rate = rate;
        result_.push_back(id);
    }
    changed_.clear();
    return result_;
}

}  // namespace overlap
