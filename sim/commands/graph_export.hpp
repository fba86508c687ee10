#pragma once

#include <string>

#include "sim/core/config_reader.hpp"
#include "sim/core/task_graph.hpp"

namespace overlap {

/// {"schema": 1, "config": …, "tasks": [{"id", "name", "kind", "gpu", "stream", "after": […], and what the
/// kind has}]}. Streams are in order: a task also follows the one before it on its (gpu, stream).
Json to_json(const TaskGraph& graph, const Json& config);
/// Graphviz, one cluster a GPU; stream order as dotted edges.
std::string to_dot(const TaskGraph& graph);

}  // namespace overlap
