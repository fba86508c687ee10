#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "models/cost_model.hpp"
#include "sim/core/task_graph.hpp"

namespace overlap {

/// When the ends of tasks are seen that are polled for (Cost::polling), and which ends are events: for both
/// engines.
class Polls {
public:
    Polls(const TaskGraph& graph, std::span<const Cost> costs);

    /// The task begins. `stream_free`: when the task before left its stream. How long its launch takes, if it
    /// takes `launch` for itself.
    Seconds begin(TaskId task, Seconds now, Seconds stream_free, Seconds launch);
    /// Its body is over.
    void end(TaskId task);
    /// Its end is an event, so that its stream goes on only when the end has been seen.
    bool keeps_stream(TaskId task) const {
        return !awaited_.empty() && awaited_[task] && costs_[task].polling;
    }
    /// What its event keeps busy, and how long.
    Seconds event(TaskId task) const {
        return awaited_.empty() || !awaited_[task] ? Seconds() : costs_[task].event;
    }

    /// Compute units are free behind a kernel while its event is recorded, not so a DMA engine.
    bool event_keeps_claim(TaskId task) const;

    struct Seen {
        TaskId task;
        Seconds delay;  ///< from now until its end is seen
    };
    /// The body of a task that is polled for is over, now: the ends of which it is known by that when they
    /// are seen. None while a kernel runs on its GPU, and no event before it is still to come. Valid until
    /// the next call.
    std::span<const Seen> seen(TaskId task, Seconds now);

private:
    void find_awaited();
    void line_up();
    Seconds next_poll(TaskId task, Seconds now) const;

    const TaskGraph& graph_;
    std::span<const Cost> costs_;
    /// By stream; empty where nothing is polled for.
    std::vector<Seconds> waiting_since_, launched_;
    std::vector<int> turns_;     ///< how many streams of its GPU are polled for before it; -1: not polled for
    std::vector<int> kernels_;   ///< by GPU: that are launched or run
    std::vector<bool> awaited_;  ///< by task; empty where that changes nothing
    /// By task: the one before and after it in its queue, its own number where there is none.
    std::vector<TaskId> before_, after_;
    std::vector<std::optional<Seconds>> next_poll_;  ///< by task, once its body is over
    std::vector<std::optional<Seconds>> seen_;       ///< by task, once that is known
    std::vector<Seen> result_;
};

}  // namespace overlap
