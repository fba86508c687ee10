#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "models/cost_model.hpp"

namespace overlap {

/// Rates of the tasks that run, at one instant, by weighted bottleneck max-fairness: each task runs at its
/// top rate, or has a bottleneck: a saturated resource on which no other task has a larger share for its
/// weight (Bonald, Roberts, "Multi-resource fairness", SIGMETRICS 2015).
///
/// With a level f(r) for every saturated resource, that is rate(i) = min(top(i), min over r of f(r) *
/// weight(i, r) / amount(i, r)). The levels are kept from one instant to the next. A resource that a change
/// has touched is filled again, given the limits that the others set on its users; if its level moves by more
/// than 1e-13 of itself, so are the other resources of its users, until nothing moves. Only resources that
/// could saturate, by what their users may draw at most, take part. Allocates nothing once warm.
class FairShare {
public:
    using Index = std::uint32_t;

    /// `streams`: number of the stream of each task, of which one at a time runs; empty: any may run
    /// together.
    FairShare(std::span<const Cost> costs, const ResourceTable& resources,
              std::span<const std::uint32_t> streams = {});

    /// While it does not run: its top rate is no more than that from now on.
    void limit(Index task, double rate) { tasks_[task].top = std::min(tasks_[task].alone, rate); }
    void start(Index task);
    void stop(Index task);
    /// A task takes units of a resource away, or gives them back. At least one unit stays, or a hundredth of
    /// what has less than a hundred.
    void hold(const Hold& hold);
    void give_back(const Hold& hold);
    /// Solves what has changed; returns the tasks whose rate is new, in no particular order.
    std::span<const Index> resolve();
    /// Share of the body done a second; 0 for a task that does not run.
    double rate(Index task) const { return tasks_[task].rate; }
    /// False for a task without demands and top rate: it takes no time.
    bool takes_time(Index task) const { return tasks_[task].top < std::numeric_limits<double>::infinity(); }

private:
    static constexpr double unlimited = std::numeric_limits<double>::infinity();
    struct Use {
        Index resource;
        Index place;  ///< among the users of the resource, while its task runs
        double amount, weight;
        double speed;  ///< weight / amount: the rate that it allows at level 1
    };
    struct Task {
        Index first_use = 0, last_use = 0;
        double alone = 0;  ///< rate alone
        double top = 0;    ///< … or less, where it is limited
        double rate = 0;
        bool running = false;
        bool changed = false;
    };
    struct User {
        Index task;
        Index use;  ///< of that task: the number in `uses_`
        double weight;
        double alone;   ///< what it draws at its top rate
        double wanted;  ///< what it could draw by its top rate and its other resources
    };
    struct Pool {
        double capacity = 0, nominal = 0;
        double level = unlimited;  ///< f(r); unlimited where not saturated
        std::vector<User> users;   ///< running tasks
        double held = 0;
        std::vector<double> largest_holds;  ///< of those that don't add up
        int fills = 0;                      ///< in this resolve
        bool limits_each = false;
        bool contended = false;  ///< its users could draw more than it has
        double drawn = 0;        ///< by its users at their top rates: by all, or the largest of `limits_each`
        double weights = 0;      ///< of its users
        bool touched = true;     ///< `contended`, `drawn` and `weights` may be out of date
        bool waits = false;      ///< to be filled again
    };

    std::span<const Use> uses(const Task& task) const {
        return std::span(uses_).subspan(task.first_use, task.last_use - task.first_use);
    }
    void read_demands(std::span<const Cost> costs);
    void add_use(Index first, Index resource, double amount, double weight);
    /// Resources that could never be short, by what one task of each stream may draw and hold at most.
    std::vector<char> ample(std::span<const Cost> costs, std::span<const std::uint32_t> streams) const;
    void leave_out(const std::vector<char>& ample);
    void update_capacity(Index resource);
    /// Its users draw so much more at their top rates, or what it has is new.
    void touch(Index resource, double drawn);
    void refill_later(Index resource);
    void update_contended(Pool& pool);
    void mark_changed(Index task);
    double limit_of(const Task& task) const;
    /// What a task of this limit could draw but for the limit that this use sets.
    double wanted(const Task& task, double limit, const Use& use) const;
    void update_wanted(Index id, Index moved);
    double water_level(const Pool& pool, double& open) const;
    bool fill(Index resource);

    std::vector<Task> tasks_;
    std::vector<Use> uses_;
    std::vector<Pool> pools_;
    std::vector<Index> waiting_;  ///< resources to fill again, first come first served
    std::vector<Index> changed_;  ///< tasks whose rate may be new
    std::vector<Index> result_;   ///< what resolve has returned
};

}  // namespace overlap
