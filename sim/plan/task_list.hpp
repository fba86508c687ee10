#pragma once

#include <vector>

#include "sim/core/config_reader.hpp"
#include "sim/core/task_graph.hpp"

namespace overlap {

/// The tasks of a plan with their edges, in the order of the file, in which a task may wait for a later one.
struct TaskList {
    std::vector<Task> tasks;
    std::vector<std::size_t> line;   ///< by task: its number in the file; tasks of each_rank have that of one
    std::vector<Edge> edges;         ///< by successor, in the order of "after"
    std::vector<std::string> names;  ///< by line; empty: Task::name()
    std::string origin;

    /// "'gemm s1' of rank 3", as messages name it.
    std::string name_of(TaskId id) const;
};

/// The graph of a list: numbers are those of the list if no task waits for a later one, else the nearest order in which
/// none does. `new_id`: by task of the list. Throws UserError that names the tasks of a cycle.
TaskGraph graph_of(const TaskList& list, std::vector<TaskId>& new_id);

}  // namespace overlap
