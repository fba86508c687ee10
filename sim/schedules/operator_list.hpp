#pragma once

#include <functional>
#include <optional>

#include "sim/collectives/collective_algorithm.hpp"
#include "sim/schedules/schedule.hpp"

namespace overlap {

/// The task of an operator that is no collective.
Work compute_work(const Operator& op);
/// The collectives of a workload, in its order.
std::vector<CollectiveKind> collectives_of(const Workload& workload);
/// Whether whole collectives of this kind can be put into these DMA commands.
bool can_command(DmaCommands commands, CollectiveKind kind);

/// Whether a list of operators has a collective that alone takes what a computation makes, and takes nothing
/// else, so that one kernel can compute and send; no all_gather, whose operand each rank has one shard of.
bool sends_a_result(const Workload& workload);

/// After which tasks each rank has what a computation made, and what the collective of it gives.
struct FusedEnds {
    RankTasks made, given;
};
/// Adds a computation, after `ready`, and the collective of its result to a graph, as one kernel a rank.
using Fuse = std::function<FusedEnds(TaskGraph& graph, const Work& computation,
                                     const CollectiveWork& collective, const RankTasks& ready)>;

/// Tasks of a workload whose operators are not cut: each once, on every rank. With `in_sequence` an operator
/// also waits, on each rank, for the end of the operator before it in the list. With `fuse`, operators that
/// have such a collective of their result are added together with it.
TaskGraph build_operators(const Workload& workload, const Topology& topology, const ScheduleParams& params,
                          bool in_sequence, const Fuse& fuse = nullptr);
/// The size of that graph. `fuse` says what a Fuse adds, where a rank has what its computation made after one
/// task.
using FuseSize = std::function<CollectiveSize(CollectiveKind collective, double ready)>;
GraphSize size_of_operators(const Workload& workload, const Topology& topology, const ScheduleParams& params,
                            bool in_sequence, const FuseSize& fuse = nullptr);

}  // namespace overlap
