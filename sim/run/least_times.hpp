#pragma once

#include "models/costs.hpp"
#include "models/resources.hpp"
#include "sim/core/task_graph.hpp"
#include "sim/workload/workload.hpp"

namespace overlap {

/// Lower bounds for every order of a graph's tasks and every engine, without latencies and contention. Of each side alone:
/// the tasks of the busiest stream, the longest chain of bodies over edges, or the total time of the busiest resource.
struct LeastTimes {
    Seconds computation;    ///< parts of the pair's GEMM cost at most their share of the whole; no packing
    Seconds communication;  ///< transfers, and the reductions of collectives
    /// Of a list: the longest chain of operators, computation and communication together. Schedules cut a collective and
    /// the computation beside it into pieces, so such two count only to the end of the longer one. Of a pair 0.
    Seconds chain;
};

/// `graph`: with the edges of data only; `costs`: without any effect.
LeastTimes least_times(const TaskGraph& graph, const Workload& workload, CostView costs,
                       const ResourceTable& resources);

}  // namespace overlap
