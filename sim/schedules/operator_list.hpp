#pragma once

#include "sim/schedules/schedule.hpp"

namespace overlap {

/// Tasks of a workload whose operators are not cut: each once, on every rank. With `in_sequence` an operator
/// also waits, on each rank, for the end of the operator before it in the list.
TaskGraph build_operators(const Workload& workload, const Topology& topology, const ScheduleParams& params,
                          bool in_sequence);

}  // namespace overlap
