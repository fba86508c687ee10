#pragma once

#include "sim/schedules/schedule.hpp"

namespace overlap {

/// The task of an operator that is no collective.
Work compute_work(const Operator& op);
/// The collectives of a workload, in its order.
std::vector<CollectiveKind> collectives_of(const Workload& workload);
/// Whether whole collectives of this kind can be put into these DMA commands.
bool can_command(DmaCommands commands, CollectiveKind kind);

/// Tasks of a workload whose operators are not cut: each once, on every rank. With `in_sequence` an operator
/// also waits, on each rank, for the end of the operator before it in the list.
TaskGraph build_operators(const Workload& workload, const Topology& topology, const ScheduleParams& params,
                          bool in_sequence);

}  // namespace overlap
