#pragma once

#include <vector>

#include "models/costs.hpp"
#include "sim/core/task_graph.hpp"

namespace overlap {

/// GPUs whose host sees the ends of tasks one at a time, at least Completion::apart from each other. The host does
/// not look for the end of a kernel if only the next task of its stream waits for that end.
class Completions {
public:
    Completions(const TaskGraph& graph, CostView costs);

    /// Time from the end of the body of `task`, which is now, until the end is seen. Called once a task with a
    /// Completion, in the order of ends.
    Seconds delay(TaskId task, Seconds now);

private:
    void find_unseen();

    const TaskGraph& graph_;
    CostView costs_;
    std::vector<Seconds> last_;  ///< by GPU: when it last saw an end; empty where Completion::apart is 0
    /// Whether the host does not look for a task's end; empty where Completion::apart is 0.
    std::vector<bool> unseen_;
};

}  // namespace overlap
