#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "models/costs.hpp"

namespace overlap {

/// Rates of the running tasks at one instant, by weighted bottleneck max-fairness: each task runs at its top
/// rate, or has a bottleneck: a saturated resource on which no other task has a larger share for its
/// weight (Bonald, Roberts, "Multi-resource fairness", SIGMETRICS 2015).
///
/// Every saturated resource r has a level f(r), and
///
///     rate(i) = min(top(i), min over r of f(r) * weight(i, r) / amount(i, r))
///
/// The levels are kept from one instant to the next. When a task starts or stops on a resource, its level is
/// computed again from the limits that other resources set on its users. If the level moves by more than a
/// fraction of 1e-13, the other resources of its users follow, until no level moves. Resources wait in turns, by the
/// places that they have among a task's demands. All of a turn are filled from the same limits, so rates depend neither on the
/// numbers of tasks and resources nor on the order in which tasks start: where weights are 1, not even in the last bit. Resources that cannot
/// saturate, by the most that their users may draw, are left out. A task that draws less than an even share of each
/// of its resources is steady: it always runs at its top rate, and its resources have the less capacity for others.
/// Allocates nothing after the first instants.
///
/// A class of tasks (models/costs.hpp) has one task that runs at most, so a task is named by its class here.
class FairShare {
public:
    using Index = std::uint32_t;

    /// `streams`: by task, the number of its stream. Tasks of one stream run one at a time; empty: all tasks
    /// may run together.
    FairShare(CostView costs, const ResourceTable& resources, std::span<const std::uint32_t> streams = {});

    /// Whether some resource may saturate. If none can, each task always runs at its top rate.
    bool can_saturate() const { return !uses_.empty(); }
    /// Rate of a running task that shares nothing; infinity for a task that takes no time.
    double top_rate(Index task) const { return tasks_[task].top; }

    /// Caps the top rate of a task that does not run.
    void limit(Index task, double rate) { tasks_[task].top = std::min(tasks_[task].alone, rate); }
    void start(Index task);
    void stop(Index task);
    /// A task takes units of a resource away, or gives them back. One unit stays at least, or a hundredth of a
    /// capacity below one hundred.
    void hold(const Hold& hold);
    void give_back(const Hold& hold);
    /// Updates the rates; returns the tasks whose rate has changed, in no particular order.
    std::span<const Index> resolve() {
        if (turns_.bits == 0 && changed_.empty()) return {};
        return resolve_changes();
    }
    /// Fraction of the body done in a second; 0 for a task that does not run.
    double rate(Index task) const { return tasks_[task].rate; }
    /// False for a task without demands and without a top rate.
    bool takes_time(Index task) const { return tasks_[task].top < std::numeric_limits<double>::infinity(); }

private:
    static constexpr double unlimited = std::numeric_limits<double>::infinity();
    static constexpr double settled = 1e-13;     ///< relative difference of levels that count as one
    static constexpr double clearly = 1 - 1e-6;  ///< below this share of a limit, rounding cannot reach it
    // A bit for each turn, and one more turn can still be shifted by.
    static constexpr Index most_turns = 63, no_use = UINT32_MAX;
    struct Use {
        Index resource;  ///< while demands are read; then its pool
        double amount, weight;
        double speed;  ///< weight / amount: rate of the task at level 1
    };
    struct Task {
        Index first_use = 0, last_use = 0;
        double alone = 0;  ///< rate alone
        double top = 0;    ///< `alone`, or the cap of limit()
        double rate = 0;
        bool steady = false;  ///< no resource can limit it
        bool running = false;
        bool changed = false;
        Index moved = 0;  ///< place in `moved_`, from 1
    };
    struct User {
        Index task;
        Index use;  ///< index into `uses_`
        double amount, speed;
    };
    /// Apart from the rest of its task, because every change of a limit reads and writes it. Of a running task: the
    /// lowest of `top` and of what each use allows, and the second lowest, at most `top`.
    struct Limits {
        double lowest = 0, second = 0;
    };
    struct Moved {
        Index task, use;  ///< the use by which its limits change; no_use: several
        Limits before;
    };
    /// What starts and stops of tasks and changes of limits read and write is in the first of two cache lines.
    struct alignas(64) Pool {
        double level = unlimited;  ///< f(r); unlimited where not saturated
        double wanted = 0;         ///< while unlimited: the sum of what the users draw
        double capacity = 0;
        double nominal = 0;  ///< capacity without holds
        double drawn = 0;    ///< by its users at their top rates: the sum, or with limits_each the largest
        double weights = 0;  ///< sum over its users
        Index first_user = 0, last_user = 0;  ///< in `users_`: running tasks, with space for all
        bool limits_each = false;
        bool contended = false;     ///< its users could draw more than its capacity
        bool touched = true;        ///< `contended` and `weights` may be out of date
        bool waits = false;         ///< is in `turns_.waiting`
        bool extrapolated = false;  ///< in the last fill
        std::uint8_t turn = most_turns - 1;
        alignas(64) std::int32_t fills = 0;  ///< number of fills in that call of resolve_changes():
        std::uint32_t resolved = 0;          ///< the one in which it was filled last
        double next = unlimited;  ///< level after this turn; then, until it is over, the level before
        double step = 0;          ///< by which its level moved in the last fill
        double factor = 0;        ///< that step, as a fraction of the one before
        double held = 0;
        std::vector<double> largest_holds;  ///< holds of which only the largest counts
    };
    /// Resources that wait to be filled, and those that are.
    struct Turns {
        std::array<std::vector<Index>, most_turns> waiting;  ///< resources to fill, by turn
        std::uint64_t bits = 0;                              ///< one for each turn of which some wait
        std::vector<Index> now;                              ///< those that are filled now
        std::vector<Index> rounded;  ///< those of them whose level changes by rounding only
        std::uint32_t resolved = 0;  ///< calls of resolve_changes()
    };

    std::span<const Use> uses(const Task& task) const {
        return std::span(uses_).subspan(task.first_use, task.last_use - task.first_use);
    }
    std::span<const User> users(const Pool& pool) const {
        return std::span(users_).subspan(pool.first_user, pool.last_user - pool.first_user);
    }
    void read_demands(std::span<const Cost> costs);
    void add_use(Index first, ResourceId resource, double amount, double weight);
    /// What holds at every instant, by pool.
    struct Bounds {
        std::vector<char> ample;  ///< the tasks that may run together, at their top rates, cannot saturate it
        std::vector<double> least_level;  ///< where it is saturated; 0: unknown
    };
    Bounds bounds(CostView costs, std::span<const std::uint32_t> streams) const;
    /// Whether each pool has a resource that follows no other. A resource follows another of the same capacity if
    /// exactly those who use the other use as much of it, as links in series have. It then limits nobody more than
    /// the other.
    std::vector<char> lead_others() const;
    void apply(const Bounds& bounds);
    /// A steady task starts (`sign` = 1) or stops (−1) drawing from its resources.
    void draw_steadily(const Task& task, double sign);
    void update_capacity(Index resource);
    /// The users of `resource` draw `drawn` more at their top rates, or its capacity has changed.
    void touch(Index resource, double drawn);
    std::span<const Index> resolve_changes();
    void refill_later(Index resource);
    /// The users of `resource` want `more`.
    void want(Index resource, double more);
    void update_contended(Pool& pool);
    void mark_changed(Index task);
    Limits find_limits(const Task& task) const;
    /// One use of the task allowed the rate `before` and allows `now`.
    void replace_limit(Index task, double before, double now);
    /// The lowest of a task's limits but that of a use which allows the rate `allowed`.
    static double limit_elsewhere(const Limits& limits, double allowed) {
        return allowed > limits.lowest ? limits.lowest : limits.second;
    }
    /// What the top rate and the other uses of a task let it draw from a pool at `level`.
    double wanted_by(const User& user, double level) const;
    double water_level(Pool& pool, double& open);
    static double extrapolate(Pool& pool, double before, double level);
    bool fill(Pool& pool);
    template <class LimitsChange>
    void move_level(Pool& pool, const LimitsChange& limits_change);
    /// `task` had other limits before. Its resources may have to follow, but for the one of the use `except`.
    void follow(Index task, const Limits& before, Index except);
    /// Changes the order of `resources`.
    void fill_all(std::span<Index> resources);

    const ResourceTable& resources_;
    std::vector<Task> tasks_;
    std::vector<Limits> limits_;  ///< by task
    std::vector<Use> uses_;
    std::vector<Index> places_;  ///< by use: index into `users_` while the task runs
    std::vector<User> users_;
    std::vector<Pool> pools_;
    bool several_uses_;          ///< a task may use several resources of one pool
    bool alike_weights_ = true;  ///< all weights are 1
    Turns turns_;
    std::vector<Moved> moved_;    ///< tasks whose limits change now
    std::vector<Index> changed_;  ///< tasks whose rate may have changed
    std::vector<Index> result_;   ///< result of the last resolve()
};

}  // namespace overlap
