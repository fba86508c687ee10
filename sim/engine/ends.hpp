#pragma once

#include <optional>
#include <span>
#include <vector>

#include "models/costs.hpp"
#include "sim/core/task_graph.hpp"
#include "sim/engine/completions.hpp"

namespace overlap {

/// What follows the end of a body: how long the task keeps its stream, and when its end is seen.
/// It separates TaskLifecycle from the effects that only some devices have: completions that are seen one after
/// another (Completion::apart), events (Completion::event) and polls (Polling). An effect is off if the device file
/// does not have its fields.
class Ends {
public:
    Ends(const TaskGraph& graph, CostView costs);

    /// Duration of the launch of `task`, which begins now; `launch` is its duration without other launches.
    /// `stream_free`: when the previous task left the stream.
    Seconds launch_time(TaskId task, Seconds now, Seconds stream_free, Seconds launch);

    struct Seen {
        TaskId task;
        Seconds delay;  ///< from now until the end of the task is seen
    };
    struct Ending {
        bool keeps_stream = false;   ///< until `event` is over; if `event` is 0, until the end is seen
        Seconds event;               ///< time that an event after the task takes
        std::span<const Seen> seen;  ///< ends for which the time is known now
    };
    /// The body of `task` is over. Called once a task, in the order of ends. `seen` is valid until the next call.
    Ending body_over(TaskId task, Seconds now);

    /// True for an end that is polled for and that other streams wait for: the stream goes on when the end has
    /// been seen.
    bool keeps_stream(TaskId task) const { return is_event(task) && polling(task) != nullptr; }

    /// True for an end that another stream waits for (Polling::own_events), where such ends take time
    /// (Completion::event) or are polled for.
    bool is_event(TaskId task) const { return !awaited_.empty() && awaited_[task]; }

private:
    const Polling* polling(TaskId task) const { return std::get_if<Polling>(&costs_[task].end); }
    void find_awaited();
    void line_up();
    /// The task before it on its stream; its own number if it is the first.
    TaskId task_before(TaskId task) const;
    void see(TaskId task, Seconds now);
    Seconds next_poll(TaskId task, Seconds now) const;

    const TaskGraph& graph_;
    CostView costs_;
    Completions completions_;
    std::vector<TaskId> ended_last_;  ///< by stream, where streams run by data; the number of tasks for none
    std::vector<Seconds> waiting_since_;  ///< by stream: start of the wait; empty where nothing is polled for
    std::vector<int> kernels_;            ///< by GPU: kernels that are launched or run
    std::vector<bool> awaited_;           ///< by task: its end is an event; empty where events take no time
    /// The previous and the next event of a task's event queue; its own number where there is none.
    std::vector<TaskId> before_, after_;
    std::vector<std::optional<Seconds>> next_poll_;  ///< by task, once its body is over
    std::vector<std::optional<Seconds>> seen_at_;    ///< by task, once known
    std::vector<Seen> seen_;
};

}  // namespace overlap
