#pragma once

#include <functional>

#include "sim/collectives/collective_algorithm.hpp"
#include "sim/schedules/listed_pairs.hpp"

namespace overlap {

/// The task of an operator other than a collective.
Work compute_work(const Operator& op);
/// The collectives of a workload, in its order.
std::vector<CollectiveKind> collectives_of(const Workload& workload);
/// Whether these DMA commands can do whole collectives of this kind.
bool can_command(DmaCommands commands, CollectiveKind kind);

/// Whether a list of operators has a collective that is the only reader of a computation's result
/// and reads nothing else, so that one kernel can compute and send. No all_gather: each rank has
/// only one shard of its operand.
bool sends_a_result(const Workload& workload);

/// Tasks after which each rank has the result of a computation, and that of its collective.
struct FusedEnds {
    RankTasks made, given;
};
/// Adds a computation, after `ready`, and the collective of its result to the graph, as one kernel a rank.
using Fuse = std::function<FusedEnds(const Work& computation, const CollectiveWork& collective,
                                     const RankTasks& ready)>;

/// Adds the tasks of a workload with whole operators: each once, on every rank. With `in_sequence`, an operator also
/// waits, on each rank, for the end of the operator before it in the list. With `fuse`, an operator and the
/// collective of its result are added together, if the list has such a collective. Pairs of the list that have
/// a choice are the graphs of their schedules instead (see splice); `choices` are in the order of the list.
void add_operators(const Workload& workload, const Topology& topology, const ScheduleParams& params,
                   bool in_sequence, TaskGraph& graph, const Fuse& fuse = nullptr,
                   std::span<const PairChoice> choices = {});

}  // namespace overlap
