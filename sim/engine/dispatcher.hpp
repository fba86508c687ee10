#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "models/cost_model.hpp"
#include "sim/core/task_graph.hpp"
#include "sim/engine/unit_pool.hpp"

namespace overlap {

/// What lies between a task and the successor that it lets go; each has a latency of its own.
enum class Handoff : std::uint8_t {
    same_stream,   ///< none
    other_stream,  ///< Cost::handoff
    other_gpu,     ///< Cost::remote_handoff
    flag,          ///< Cost::flag: a progress edge
};
inline constexpr std::array all_handoffs{Handoff::same_stream, Handoff::other_stream, Handoff::other_gpu,
                                         Handoff::flag};
inline Seconds latency(const Cost& cost, Handoff kind) {
    const std::array latencies{Seconds(), cost.handoff, cost.remote_handoff, cost.flag};
    return latencies[static_cast<std::size_t>(kind)];
}

/// Which task may do what next: dependencies, in-order streams, claims on units. It knows order, not time: an
/// engine reports what has happened and carries out what is returned, which is valid until the next call.
/// Phases as in `Cost`. A body goes from stop to stop: the shares of it at which progress edges leave or
/// arrive, or its claim gets smaller.
class Dispatcher {
public:
    /// What the engine is to begin now.
    struct Next {
        std::vector<TaskId> launch;
        std::vector<TaskId> set_up;
        /// The body goes on from its stop. One that runs is to go on with what is its next stop and stretch
        /// now; one that has not begun will.
        std::vector<TaskId> resume;
    };

    /// `seed` decides what the machine leaves unspecified; `progress` says how far a body
    /// is and `now` what time it is: asked where costs have tiles or blocks.
    Dispatcher(const TaskGraph& graph, std::span<const Cost> costs, const ResourceTable& resources,
               std::uint64_t seed, UnitPools::Progress progress = {}, UnitPools::Clock now = {});

    /// At time zero.
    const Next& begin();
    /// How long the launch of `task`, just begun, takes.
    Seconds launch_time(TaskId task) const {
        return states_[task].waited_to_launch ? costs_[task].queued_launch : costs_[task].launch;
    }
    /// The launch of `task` is over.
    const Next& launched(TaskId task);
    /// The share of its body at which `task` stops next: 1 at its end, for one with tiles that came late
    /// more.
    double next_stop(TaskId task) const;
    /// Whether that is its end.
    bool ends_next(TaskId task) const;
    /// How much longer its body takes at the top rate, for lack of units, up to its next stop.
    double stretch(TaskId task) const {
        return costs_[task].claim && costs_[task].claim->blocks > 0 ? pools_.stretch(task) : 1.0;
    }
    /// Whether that is a stop at which successors or predecessors wait: it has a number.
    bool is_numbered(TaskId task) const;
    /// A number for the stop that `task` has come to, of all tasks.
    std::size_t stop_number(TaskId task) const { return states_[task].stop; }
    /// The body of `task` has come to `next_stop`, not its end. It goes on if `resume` says so, now or later.
    const Next& reached(TaskId task);
    /// The body of `task` is over: its claim is free, and its stream unless it keeps that.
    const Next& body_done(TaskId task, bool keeps_stream = false);
    /// It kept its stream, and leaves it.
    const Next& stream_left(TaskId task);
    /// Whether anybody waits for this; if not, there is no need to report it.
    bool hands_over(TaskId task, Handoff kind) const;
    bool flags(std::size_t stop) const { return stops_[stop].flags; }
    /// `task` has ended: calls `at_once(kind)` for the successors that may go now, and `later(kind, latency)`
    /// for those that wait.
    template <class AtOnce, class Later>
    void hand_over(TaskId task, AtOnce&& at_once, Later&& later) const {
        for (const Handoff kind : all_handoffs) {
            if (!hands_over(task, kind)) continue;
            const Seconds delay = latency(costs_[task], kind);
            if (delay == Seconds())
                at_once(kind);
            else
                later(kind, delay);
        }
    }
    /// `task` has ended, and the latency of `kind` is over.
    const Next& handed_over(TaskId task, Handoff kind);
    /// The latency of a flag set at a stop of `task` is over.
    const Next& flagged(TaskId task, std::size_t stop);
    /// Of a task with thread blocks that has ended: the units that it had, times how long it had each
    /// [unit·s].
    double unit_seconds(TaskId task) const {
        return costs_[task].claim && costs_[task].claim->blocks > 0 ? pools_.unit_seconds(task) : 0.0;
    }
    /// How long the setup of a task takes that has been given what it claims.
    Seconds setup(TaskId task) const {
        const Cost& cost = costs_[task];
        const bool more = cost.switch_over > Seconds() && cost.claim && pools_.switched(task);
        return more ? cost.setup + cost.switch_over : cost.setup;
    }
    /// All that falls on this instant has been reported: units are given to the tasks that wait for them.
    const Next& settle();

private:
    static constexpr std::uint32_t none = UINT32_MAX;
    struct State {
        std::uint32_t waits_for = 0;  ///< predecessors that have not let it start
        std::uint32_t stop = 0;       ///< next one
        std::uint32_t last_stop = 0;  ///< one past its last
        bool has_stream = false;      ///< it is first on its stream
        bool launch_begun = false;
        bool waited_to_launch = false;
        bool launch_over = false;
        bool stalled = false;  ///< at `stop`
    };
    struct Stop {
        double at = 0;
        std::uint32_t waits_for = 0;  ///< predecessors that have not let the body beyond
        bool flags = false;           ///< successors wait for it
    };
    struct Successor {
        std::uint32_t task;
        std::uint32_t stop;  ///< of the successor; none: its start
        std::uint32_t from;  ///< stop of the predecessor; none: its end
        Handoff kind;
    };

    /// The front end of a GPU, where launches that can't go side by side wait.
    struct Launcher {
        bool busy = false;
        std::size_t next = 0;  ///< of `waiting`
        std::vector<std::uint32_t> waiting;
    };

    bool goes_in_steps(TaskId task) const {
        const auto& claim = costs_[task].claim;
        return claim && (claim->tiles > 0 || claim->blocks > 0);
    }
    void begin_launch(TaskId task);
    void add_stops(const TaskGraph& graph);
    void add_successors(const TaskGraph& graph);
    std::uint32_t stop_at(TaskId task, double share) const;
    void clear();
    template <class Chosen>
    const Next& release(TaskId task, Chosen&& chosen);
    void advance(TaskId task);
    std::span<const Successor> successors(TaskId task) const {
        return std::span(successors_)
            .subspan(first_successor_[task], first_successor_[task + 1] - first_successor_[task]);
    }

    std::span<const Cost> costs_;
    std::vector<State> states_;
    std::vector<Stop> stops_;                    ///< of all tasks, task by task
    std::vector<Successor> successors_;          ///< likewise
    std::vector<std::size_t> first_successor_;   ///< by task, and one past the last
    std::vector<std::uint8_t> hands_over_;       ///< by task: a bit a Handoff
    std::vector<std::uint32_t> next_in_stream_;  ///< own number where last
    std::vector<Launcher> launchers_;            ///< by GPU; none where all launches go side by side
    std::vector<std::uint32_t> gpus_;            ///< by task; likewise
    UnitPools pools_;
    Next next_;
};

}  // namespace overlap
