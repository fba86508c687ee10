#pragma once

#include <span>
#include <vector>

#include "models/cost_model.hpp"
#include "sim/core/task_graph.hpp"

namespace overlap {

/// A GPU that sees ends one after another (Cost::completions_apart). Nobody looks for the end of a kernel for
/// which only the next task of its stream waits.
class Completions {
public:
    Completions(const TaskGraph& graph, std::span<const Cost> costs);

    /// Time from the end of the body of `task`, which is now, until the end is seen. Called once a task, in the
    /// order of ends.
    Seconds delay(TaskId task, Seconds now);

private:
    bool is_kernel(TaskId task) const;
    void find_unseen();

    const TaskGraph& graph_;
    std::span<const Cost> costs_;
    std::vector<Seconds> last_;  ///< by GPU: when it last saw an end; empty where completions_apart is 0
    std::vector<bool> unseen_;   ///< by task: nobody looks for its end; empty likewise
};

}  // namespace overlap
