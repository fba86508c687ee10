#pragma once

#include <span>
#include <vector>

#include "models/costs.hpp"
#include "sim/core/task_graph.hpp"

namespace overlap {

/// A GPU that sees ends one after another (Completion::apart). Nobody looks for the end of a kernel for
/// which only the next task of its stream waits.
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
    std::vector<bool> unseen_;   ///< by task: nobody looks for its end; empty likewise
};

}  // namespace overlap
