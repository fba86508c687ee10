#pragma once

#include "sim/schedules/listed_pairs.hpp"

namespace overlap {

/// Memory that a schedule needs on one GPU (the one with most) beyond the operands and the result of its
/// workload: stages that hold the pieces of a fused step together, and places for partial results. No place
/// is reused, as in `place`, with whose buffers it agrees (tests/contract). Not counted: buffers inside a
/// library's collective, and pieces that a GPU only forwards (hierarchical all-to-all). With scatter=false,
/// operands and results stay in the order of steps, which needs no stage. Of a list: the sum over its pairs
/// that are cut (`choices`).
Bytes staging_bytes(const TaskGraph& graph, const ScheduleEntry& schedule, const Workload& workload,
                    const Topology& topology, const ScheduleParams& params,
                    std::span<const PairChoice> choices = {});

}  // namespace overlap
