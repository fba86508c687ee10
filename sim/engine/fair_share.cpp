#include "sim/engine/fair_share.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <numeric>
#include <utility>

namespace overlap {
namespace {

// After this many fills, levels still change only by less than the error of the costs.
constexpr std::size_t most_fills = 10'000'000;
constexpr int fills_before_damping = 50;
// Steps that shrink by factors this much alike are taken as geometric, and factors above `slowest_extrapolated` as too
// close to 1 to say where the steps end.
constexpr double alike_factors = 1e-3, slowest_extrapolated = 0.9;

}  // namespace

FairShare::FairShare(CostView costs, const ResourceTable& resources, std::span<const std::uint32_t> streams)
    : resources_(resources),
      tasks_(costs.classes().size()),
      limits_(tasks_.size()),
      pools_(resources.pools()),
      several_uses_(resources.pools() < resources.size()) {
    for (ResourceId r = 0; r < resources.size(); ++r) {
        Pool& pool = pools_[resources.pool(r)];
        pool.capacity = pool.nominal = resources[r].capacity;
        pool.limits_each = resources[r].limits_each;
    }
    read_demands(costs.classes());
    apply(bounds(costs, streams));
}

void FairShare::read_demands(std::span<const Cost> costs) {
    std::size_t most = 0;
    for (const Cost& cost : costs) most += cost.demands.size();
    uses_.reserve(most);
    for (std::size_t t = 0; t < costs.size(); ++t) {
        Task& task = tasks_[t];
        task.first_use = static_cast<Index>(uses_.size());
        for (const Demand& demand : costs[t].demands) {
            if (demand.amount <= 0) continue;
            const double weight = pools_[resources_.pool(demand.resource)].limits_each ? 1 : demand.weight;
            add_use(task.first_use, demand.resource, demand.amount, weight);
        }
        task.last_use = static_cast<Index>(uses_.size());
        double body = costs[t].body.si();
        for (const Use& use : uses(task))
            body = std::max(body, use.amount / pools_[resources_.pool(use.resource)].nominal);
        task.alone = task.top = body > 0 ? 1.0 / body : unlimited;
    }
}

// The uses of one task begin at `first`. Two demands for the same resource become one use.
void FairShare::add_use(Index first, ResourceId id, double amount, double weight) {
    const auto resource = static_cast<Index>(id);
    for (Use& same : std::span(uses_).subspan(first)) {
        if (same.resource != resource) continue;
        same.speed = 1 / (1 / same.speed + amount / weight);
        same.amount += amount;
        same.weight = same.amount * same.speed;
        return;
    }
    uses_.push_back({resource, amount, weight, weight / amount});
}

// Running sums drift far less than the margin of `clearly`. Closer to the capacity update_contended() sums anew.
void FairShare::touch(Index resource, double drawn) {
    Pool& pool = pools_[resource];
    pool.touched = true;
    pool.drawn += drawn;
    const bool ample = !pool.limits_each && pool.drawn < pool.capacity * clearly;
    if (ample && pool.level == unlimited)
        pool.contended = false;
    else
        refill_later(resource);
}

void FairShare::refill_later(Index resource) {
    Pool& pool = pools_[resource];
    if (std::exchange(pool.waits, true)) return;
    turns_.waiting[pool.turn].push_back(resource);
    turns_.bits |= std::uint64_t{1} << pool.turn;
}

void FairShare::want(Index resource, double more) {
    Pool& pool = pools_[resource];
    if (pool.level < unlimited || (pool.wanted += more) > pool.capacity * clearly) refill_later(resource);
}

void FairShare::mark_changed(Index task) {
    if (!std::exchange(tasks_[task].changed, true)) changed_.push_back(task);
}

void FairShare::start(Index id) {
    Task& task = tasks_[id];
    task.running = true;
    mark_changed(id);
    if (task.steady) {
        limits_[id] = {task.top, task.top};
        return draw_steadily(task, 1);
    }
    const Limits limits = limits_[id] = find_limits(task);
    for (Index number = task.first_use; number < task.last_use; ++number) {
        const Use& use = uses_[number];
        const Index place = places_[number] = pools_[use.resource].last_user++;
        users_[place] = {id, number, use.amount, use.speed};
        pools_[use.resource].wanted += use.amount * limits.lowest;
        touch(use.resource, use.amount * task.top);
    }
}

void FairShare::stop(Index id) {
    Task& task = tasks_[id];
    task.running = false;
    task.rate = 0;
    if (task.steady) return draw_steadily(task, -1);
    for (Index number = task.first_use; number < task.last_use; ++number) {
        const Use& use = uses_[number];
        const User& last = users_[--pools_[use.resource].last_user];
        const Index place = places_[last.use] = places_[number];
        users_[place] = last;
        pools_[use.resource].wanted -= use.amount * limits_[id].lowest;
        touch(use.resource, -use.amount * task.top);
    }
}

// What is drawn is rounded to a multiple of the last digit of the nominal capacity. So sums are exact: they do not
// drift, and depend on no order.
void FairShare::draw_steadily(const Task& task, double sign) {
    for (const Use& use : uses(task)) {
        const double nominal = pools_[use.resource].nominal;
        const double drawn = (nominal + use.amount * task.top) - nominal;
        pools_[use.resource].capacity -= sign * drawn;
        touch(use.resource, 0);
    }
}

void FairShare::hold(const Hold& hold) {
    const auto number = static_cast<Index>(resources_.pool(hold.resource));
    Pool& pool = pools_[number];
    if (hold.adds_up)
        pool.held += hold.units;
    else
        pool.largest_holds.push_back(hold.units);
    update_capacity(number);
}

void FairShare::give_back(const Hold& hold) {
    const auto number = static_cast<Index>(resources_.pool(hold.resource));
    Pool& pool = pools_[number];
    if (hold.adds_up)
        pool.held -= hold.units;
    else
        pool.largest_holds.erase(std::find(pool.largest_holds.begin(), pool.largest_holds.end(), hold.units));
    update_capacity(number);
}

void FairShare::update_capacity(Index resource) {
    Pool& pool = pools_[resource];
    double held = pool.held;
    if (!pool.largest_holds.empty())
        held += *std::max_element(pool.largest_holds.begin(), pool.largest_holds.end());
    pools_[resource].capacity = std::max(pool.nominal - held, least_capacity(pool.nominal));
    touch(resource, 0);
}

void FairShare::update_contended(Pool& pool) {
    pool.touched = false;
    if (alike_weights_ && !pool.limits_each && pool.drawn * clearly > pool.capacity) {
        pool.weights = static_cast<double>(users(pool).size());
        pool.contended = true;
        return;
    }
    pool.drawn = pool.weights = 0;
    for (const User& user : users(pool)) {
        const double alone = user.amount * tasks_[user.task].top;
        pool.drawn = pool.limits_each ? std::max(pool.drawn, alone) : pool.drawn + alone;
        pool.weights += uses_[user.use].weight;
    }
    pool.contended = pool.drawn > pool.capacity * (1 + settled);
}

FairShare::Limits FairShare::find_limits(const Task& task) const {
    Limits limits{task.top, task.top};
    for (const Use& use : uses(task)) {
        const double allowed = pools_[use.resource].level * use.speed;
        limits.second = std::min(limits.second, std::max(limits.lowest, allowed));
        limits.lowest = std::min(limits.lowest, allowed);
    }
    return limits;
}

[[gnu::always_inline]] inline void FairShare::replace_limit(Index task, double before, double now) {
    auto& [lowest, second] = limits_[task];
    const bool was_one = before <= second;
    if (several_uses_ || (was_one && now > second)) {
        limits_[task] = find_limits(tasks_[task]);
        return;
    }
    if (was_one && before == lowest) lowest = second;
    second = was_one ? std::max(lowest, now) : std::min(second, std::max(lowest, now));
    lowest = std::min(lowest, now);
}

double FairShare::wanted_by(const User& user, double level) const {
    return user.amount * limit_elsewhere(limits_[user.task], level * user.speed);
}

// Water-filling: the level at which the shares min(wanted, level * weight) add up to the capacity. If the users
// want less than the capacity, the level is `unlimited`, and `open` is the level that its largest user could have.
//
// The sum of the shares is concave in the level, so Newton's method converges from below. One step from the
// previous level gets below the new one: users that want less than their share leave the rest to the others.
// Users that want exactly the capacity count as limited. Otherwise the level would pass for ever between links in
// series that have the same users.
[[gnu::always_inline]] inline double FairShare::water_level(Pool& pool, double& open) {
    if (pool.limits_each) return open = pool.capacity;
    if (alike_weights_ && pool.last_user == pool.first_user + 1) {  // what the loop below finds for one user
        pool.wanted = wanted_by(users_[pool.first_user], pool.level);
        open = pool.capacity;
        return pool.wanted < open * (1 - settled) ? unlimited : open;
    }
    const double even = pool.capacity / pool.weights;
    bool below = pool.level == unlimited;  // `open` can't be above what is looked for
    open = below ? even : pool.level;
    for (std::size_t before = users(pool).size() + (below ? 0 : 1);;) {
        const double least = open * (1 - settled);
        double sum = 0, left = pool.capacity, weights = 0, least_limited = unlimited, most_of_others = 0;
        std::size_t limited = 0;
        for (const User& user : users(pool)) {
            const double wanted = wanted_by(user, pool.level);
            const double weight = alike_weights_ ? 1 : uses_[user.use].weight;
            sum += wanted;
            const bool is_limited = !(wanted < least * weight);
            left -= is_limited ? 0 : (pool.nominal + wanted) - pool.nominal;  // as in draw_steadily()
            weights += is_limited ? weight : 0;
            limited += is_limited;
            least_limited = is_limited ? std::min(least_limited, wanted) : least_limited;
            most_of_others = is_limited ? most_of_others : std::max(most_of_others, wanted);
        }
        pool.wanted = sum;
        if (limited == 0 && below) return unlimited;
        const double next = limited == 0 ? even : left / weights, next_least = next * (1 - settled);
        const bool same =  // users are limited at this level
            alike_weights_ && limited > 0 && most_of_others < next_least && next_least <= least_limited;
        const bool found = same || limited == before || (below && next <= open);
        open = next;
        if (found) return open;
        before = limited;
        below = true;
    }
}

// Levels of resources that share users follow each other, in steps that shrink by the same factor as long as the same
// users are limited. From the third such step the level goes to where its steps would end. resolve_changes() fills the
// resource again after those that follow it, so a wrong guess costs time only.
double FairShare::extrapolate(Pool& pool, double before, double level) {
    const double step = level - before;
    const double factor = step / std::exchange(pool.step, step);
    const double difference = factor - std::exchange(pool.factor, factor);
    pool.extrapolated = std::abs(difference) < alike_factors * factor && factor < slowest_extrapolated;
    return pool.extrapolated ? level + step * factor / (1 - factor) : level;
}

// Finds the next level. True if it differs by more than rounding. With weights, levels can follow each other around a
// cycle of resources without end. After fills_before_damping fills a level therefore moves only half of its way.
[[gnu::always_inline]] inline bool FairShare::fill(Pool& pool) {
    const double before = pool.next = pool.level;
    if (std::exchange(pool.resolved, turns_.resolved) != turns_.resolved) {
        pool.fills = 0;
        pool.step = 0;
    }
    pool.extrapolated = false;
    if (pool.touched) update_contended(pool);
    if (!pool.contended) {
        if (before < unlimited) {
            pool.wanted = 0;
            for (const User& user : users(pool)) pool.wanted += wanted_by(user, before);
        }
        pool.next = unlimited;
        return before < unlimited;
    }
    if (!pool.limits_each && before == unlimited && pool.wanted < pool.capacity * clearly) return false;
    const bool damped = ++pool.fills > fills_before_damping;
    double open = unlimited;
    double level = water_level(pool, open);
    if (damped && !pool.limits_each)
        level = before < unlimited ? (before + open) / 2 : open;
    else
        level = extrapolate(pool, before, level);
    pool.next = level;
    return before != level && !(std::abs(before - level) <= settled * std::min(before, level));
}

// The users of a pool get its next level, and `limits_change(user, limits before)` is called.
template <class LimitsChange>
[[gnu::always_inline]] inline void FairShare::move_level(Pool& pool, const LimitsChange& limits_change) {
    const double before = pool.level, now = pool.next;
    pool.level = now;
    const double least = std::min(before, now);
    for (const User& user : users(pool)) {
        const Limits limits = limits_[user.task];
        if (least * user.speed > limits.second) continue;  // two other limits are lower
        replace_limit(user.task, before * user.speed, now * user.speed);
        limits_change(user, limits);
    }
}

// A resource is filled again if a user's limits elsewhere have changed, as far as they are below the user's share.
[[gnu::always_inline]] inline void FairShare::follow(Index id, const Limits& before, Index except) {
    const Task& task = tasks_[id];
    const Limits now = limits_[id];
    if (before.lowest != now.lowest) mark_changed(id);
    for (Index number = task.first_use; number < task.last_use; ++number) {
        if (number == except) continue;
        const Use& use = uses_[number];
        const Pool& pool = pools_[use.resource];
        const double share = pool.level * use.speed;
        const double wanted = std::min(share, limit_elsewhere(before, pool.next * use.speed));
        const double wants = std::min(share, limit_elsewhere(now, share));
        if (wanted != wants) want(use.resource, use.amount * (wants - wanted));
    }
}

// All are filled from the same limits, whatever their order.
void FairShare::fill_all(std::span<Index> resources) {
    std::size_t moving = 0;
    for (const Index resource : resources) {
        Pool& pool = pools_[resource];
        pool.waits = false;
        if (fill(pool))
            resources[moving++] = resource;
        else if (pool.next != pool.level)
            turns_.rounded.push_back(resource);
    }
    for (const Index resource : turns_.rounded)
        move_level(pools_[resource], [](const User&, const Limits&) {});
    turns_.rounded.clear();
    for (const Index resource : resources.first(moving)) {
        Pool& pool = pools_[resource];
        const double before = pool.level;
        move_level(pool, [&](const User& user, const Limits& limits) {
            Index& place = tasks_[user.task].moved;
            if (place == 0) {
                moved_.push_back({user.task, user.use, limits});
                place = static_cast<Index>(moved_.size());
            } else {
                moved_[place - 1].use = no_use;
            }
        });
        pool.next = before;
    }
    for (const auto& [task, use, before] : moved_) {
        tasks_[task].moved = 0;
        follow(task, before, use);
    }
    moved_.clear();
    for (const Index resource : resources.first(moving)) {
        Pool& pool = pools_[resource];
        pool.next = pool.level;
        // It has moved half of its way, or farther than was found.
        if (pool.fills > fills_before_damping || pool.extrapolated) refill_later(resource);
    }
}

// In turns, so that rates do not depend on the order in which resources were touched.
std::span<const FairShare::Index> FairShare::resolve_changes() {
    ++turns_.resolved;
    int turn = 0;
    for (std::size_t fills = 0; turns_.bits != 0 && fills < most_fills; ++turn) {
        const std::uint64_t later = turns_.bits >> turn << turn;
        turn = std::countr_zero(later != 0 ? later : turns_.bits);
        turns_.bits &= ~(std::uint64_t{1} << turn);
        std::vector<Index>& waiting = turns_.waiting[static_cast<std::size_t>(turn)];
        fills += waiting.size();
        turns_.now.clear();
        turns_.now.swap(waiting);
        fill_all(turns_.now);
    }

    // The result is the marked tasks that run and whose rate has changed.
    result_.clear();
    for (const Index id : changed_) {
        Task& task = tasks_[id];
        task.changed = false;
        if (!task.running) continue;
        if (limits_[id].lowest == task.rate) continue;
        task.rate = limits_[id].lowest;
        result_.push_back(id);
    }
    changed_.clear();
    return result_;
}

}  // namespace overlap
