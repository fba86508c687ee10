#pragma once

#include <deque>
#include <map>
#include <span>
#include <vector>

#include "models/cost_model.hpp"
#include "sim/core/task_graph.hpp"

namespace overlap {

/// Which task may do what next: dependencies, in-order streams, FIFO queues. It knows order, not time: an
/// engine reports what has happened and carries out what is returned. Phases as in `Cost`.
class Dispatcher {
public:
    /// What the engine is to begin now.
    struct Next {
        std::vector<TaskId> launch;
        std::vector<TaskId> set_up;
    };

    Dispatcher(const TaskGraph& graph, std::span<const Cost> costs);

    /// At time zero.
    Next begin();
    /// The launch of `task` is over.
    Next launched(TaskId task);
    /// The body of `task` is over: its queue and its stream are free.
    Next body_done(TaskId task);
    /// `task` has ended: successors on its own stream need not wait for a handoff.
    Next ended(TaskId task) { return release(task, true); }
    /// The handoff of `task` is over: successors on other streams may go.
    Next handed_over(TaskId task) { return release(task, false); }

private:
    struct State {
        std::size_t waits_for = 0;  ///< predecessors that have not let it go
        bool has_stream = false;    ///< it is first on its stream
        bool launch_begun = false;
        bool launch_over = false;
    };
    struct Queue {
        bool busy = false;
        std::deque<TaskId> waiting;
    };
    Next release(TaskId task, bool same_stream);
    void advance(TaskId task, Next& next);

    const TaskGraph& graph_;
    std::span<const Cost> costs_;
    std::vector<State> states_;
    std::vector<TaskId> next_in_stream_;  ///< own number where last
    std::map<ResourceId, Queue> queues_;
};

}  // namespace overlap
