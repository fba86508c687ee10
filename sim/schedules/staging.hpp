#pragma once

#include "sim/schedules/schedule.hpp"

namespace overlap {

/// Memory that a schedule needs on one GPU (the one with most) beyond the operands and the result of its
/// workload: the stages in which the pieces of a fused step lie together, and a place for each partial result
/// that comes for a sum. No place is used twice, as in `place`, whose buffers it agrees with where there are
/// any (tests/contract). Not counted: what a library's collective keeps for itself, and pieces that a GPU
/// only passes on to others (hierarchical all-to-all). With scatter=false operands and results are kept in
/// the order of steps, which takes no stage.
Bytes staging_bytes(const TaskGraph& graph, const ScheduleEntry& schedule, const Workload& workload,
                    const Topology& topology, const ScheduleParams& params);

}  // namespace overlap
