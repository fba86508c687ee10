#pragma once

#include <string>

#include "sim/core/config_reader.hpp"
#include "sim/core/task_graph.hpp"
#include "sim/schedules/placement.hpp"

namespace overlap {

/// {"schema": 1, "config": …, "tasks": [{"id", "name", "kind", "gpu", "stream", "after": […], and fields of
/// the kind}]}. Streams are in order: a task also follows the task before it on its (gpu, stream).
Json to_json(const TaskGraph& graph, const Json& config);
/// Adds "buffers", "inputs", "results" to such a graph, and "from", "to" to its tasks, so that a program can
/// execute it (configs/schema/plan.schema.json).
void add_placement(Json& graph, const Placement& placement);
/// Graphviz, one cluster a GPU; stream order as dotted edges.
std::string to_dot(const TaskGraph& graph);

}  // namespace overlap
