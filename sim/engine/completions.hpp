#pragma once

#include <span>
#include <vector>

#include "models/cost_model.hpp"
#include "sim/core/task_graph.hpp"

namespace overlap {

/// When ends are seen that a GPU sees one after another (Cost::completions_apart): for both engines. Nobody
/// sees the end of a kernel that only the next task of its stream waits for.
class Completions {
public:
    Completions(const TaskGraph& graph, std::span<const Cost> costs);

    /// From the end of the body of `task`, `now`, until it is seen. Called once a task, in the order of ends.
    Seconds delay(TaskId task, Seconds now);

private:
    bool is_kernel(TaskId task) const;
    void find_unseen();

    const TaskGraph& graph_;
    std::span<const Cost> costs_;
    std::vector<Seconds> last_;  ///< by GPU: when it saw an end last; empty where none waits for another
    std::vector<bool> unseen_;   ///< by task; likewise
};

}  // namespace overlap
