#pragma once

#include "models/costs.hpp"
#include "models/resources.hpp"
#include "sim/core/task_graph.hpp"
#include "sim/workload/workload.hpp"

namespace overlap {

/// Lower bounds for every order of a graph's tasks and every engine, without latencies and contention. Of each side
/// alone: the tasks of the busiest stream, the longest chain of bodies over edges, or the total time of the busiest
/// resource.
struct LeastTimes {
    Seconds computation;    ///< parts of the pair's GEMM cost at most their share of the whole; no packing
    Seconds communication;  ///< transfers, and the reductions of collectives
    /// The longest chain of a list's operators, computation and communication together; 0 for a pair. A collective
    /// and the GEMM next to it may run in pieces beside each other, so a chain counts the longer of the two only.
    Seconds chain;
};

/// `graph`: with the edges of data only; `costs`: without any effect.
LeastTimes least_times(const TaskGraph& graph, const Workload& workload, CostView costs,
                       const ResourceTable& resources);

}  // namespace overlap
