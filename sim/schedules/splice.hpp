#pragma once

#include "sim/collectives/collective_algorithm.hpp"

namespace overlap {

/// Tasks of each rank after which it has the results of the first and of the second operator of a pair.
struct SplicedEnds {
    RankTasks first, second;
};

/// Appends the graph of a pair to that of a list. Computation on rank r and transfers of its own operand wait for
/// `ready[r]`; no rank waits for another one's tasks. Tasks that come behind another one on their stream, which waits,
/// get no edges. Where the list runs by data (TaskGraph::run_by_data), edges keep the order of a GEMM's and a
/// collective's tasks on one stream. `group`: the GPUs whose graph it is; ranks of `ready` and of the result are theirs.
SplicedEnds splice(TaskGraph& graph, const TaskGraph& pair, Order order, const RankTasks& ready,
                   const Topology& group, ListOrder list_order);

}  // namespace overlap
