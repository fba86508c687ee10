#pragma once

#include "models/cost_model.hpp"
#include "sim/core/task_graph.hpp"
#include "sim/topology/rotations.hpp"

namespace overlap {

/// Whether `task` is `other`, a task of the GPU that stands for its own, but for the rotation between these GPUs.
/// Labels of shards are ignored: no time depends on them.
bool is_like(const Task& task, const Task& other, const Rotations& rotations);

/// Whether two costs are the same, whatever their resources.
bool is_like(const Cost& cost, const Cost& other);

/// Calls `visit(resource, other)` for each use of a resource by a cost and by one that is like it.
template <class Visit>
void for_each_use(const Cost& cost, const Cost& other, Visit&& visit) {
    for (std::size_t i = 0; i < cost.demands.size(); ++i)
        visit(cost.demands[i].resource, other.demands[i].resource);
    for (std::size_t i = 0; i < cost.holds.size(); ++i)
        visit(cost.holds[i].resource, other.holds[i].resource);
    if (cost.claim) visit(cost.claim->resource, other.claim->resource);
}

}  // namespace overlap
