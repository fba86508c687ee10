#pragma once

#include "sim/run/scenario.hpp"

namespace overlap {

/// Whether it is worth looking for ranks that are alike before a graph is built: many GPUs, and a schedule
/// that can build the tasks of representatives only.
bool may_build_representatives(const Scenario& scenario);

/// The rotations under which ranks are alike on a machine of few GPUs; none if they are not, or if that is not known
/// beforehand. The quotient is looked for in the whole graph of at most two chunks, and that of representatives only
/// must be the same as this quotient. The result is the same for all workloads and numbers of chunks that have one
/// `alikeness_key`.
std::optional<Rotations> alike_ranks_of_few(const Scenario& scenario);
/// What the result of alike_ranks_of_few depends on, but for machine and schedule; empty: there are no rotations.
std::string alikeness_key(const Scenario& scenario);

/// Sets, where ranks are alike, ScheduleParams::transfers.alike and Scenario::serial_alike. `small` is a machine of
/// the same kind with few nodes (Topology::smaller), at most half of the scenario's. On `small` the quotient is
/// looked for in the whole graph, of shards as long as the scenario's, and the graph of representatives only must be
/// the same as this quotient.
void find_alike_ranks(Scenario& scenario, const std::shared_ptr<const Machine>& small);

}  // namespace overlap
