#pragma once

#include <span>
#include <vector>

#include "models/cost_model.hpp"
#include "sim/core/task_graph.hpp"

namespace overlap {

/// When the ends of tasks are seen that are polled for (Cost::polling): for both engines.
class Polls {
public:
    Polls(const TaskGraph& graph, std::span<const Cost> costs);

    /// The task begins. `stream_free`: when the body before it on its stream was over.
    void begin(TaskId task, Seconds now, Seconds stream_free);
    /// Its body is over.
    void end(TaskId task);
    /// From the end of a body, `now`, until it is seen: none while a kernel runs on its GPU.
    Seconds delay(TaskId task, Seconds now) const;

private:
    const TaskGraph& graph_;
    std::span<const Cost> costs_;
    /// By stream; empty where nothing is polled for.
    std::vector<Seconds> waiting_since_;
    std::vector<int> turns_;    ///< how many streams of its GPU are polled for before it; -1: not polled for
    std::vector<int> kernels_;  ///< by GPU: that are launched or run
};

}  // namespace overlap
