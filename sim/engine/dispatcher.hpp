#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/cost_model.hpp"
#include "sim/core/task_graph.hpp"

namespace overlap {

/// Which task may do what next: dependencies, in-order streams, FIFO queues. It knows order, not time: an
/// engine reports what has happened and carries out what is returned, which is valid until the next call.
/// Phases as in `Cost`.
class Dispatcher {
public:
    /// What the engine is to begin now.
    struct Next {
        std::vector<TaskId> launch;
        std::vector<TaskId> set_up;
    };

    Dispatcher(const TaskGraph& graph, std::span<const Cost> costs);

    /// At time zero.
    const Next& begin();
    /// The launch of `task` is over.
    const Next& launched(TaskId task);
    /// The body of `task` is over: its queue and its stream are free.
    const Next& body_done(TaskId task);
    /// `task` has ended: successors on its own stream need not wait for a handoff.
    const Next& ended(TaskId task) { return release(task, true); }
    /// The handoff of `task` is over: successors on other streams may go.
    const Next& handed_over(TaskId task) { return release(task, false); }

private:
    struct State {
        std::uint32_t waits_for = 0;  ///< predecessors that have not let it go
        bool has_stream = false;      ///< it is first on its stream
        bool launch_begun = false;
        bool launch_over = false;
    };
    struct Successor {
        TaskId task;
        bool same_stream;
    };
    /// First come first served; `waiting` is read from `first` on.
    struct Queue {
        bool busy = false;
        std::size_t first = 0;
        std::vector<TaskId> waiting;
    };
    void clear();
    const Next& release(TaskId task, bool same_stream);
    void advance(TaskId task);

    std::span<const Cost> costs_;
    std::vector<State> states_;
    std::vector<Successor> successors_;         ///< of all tasks, task by task
    std::vector<std::size_t> first_successor_;  ///< by task, and one past the last
    std::vector<TaskId> next_in_stream_;        ///< own number where last
    std::vector<Queue> queues_;                 ///< by resource
    Next next_;
};

}  // namespace overlap
