#pragma once

#include "sim/quotient/quotient.hpp"

namespace overlap {

/// The resources of a machine as a graph of representatives only (sim/collectives/built_ranks.hpp) uses them: those
/// that rotations map onto each other are one pool. Links that no copy of the graph crosses share one more pool.
ResourceTable pooled_by(const Rotations& rotations, const TaskGraph& representatives,
                        const Topology& topology, const ResourceTable& resources);

/// Whether a graph of representatives with these pools is the same as a quotient found in the whole graph: the same
/// tasks in the same order, with the same edges and the same shared use of resources. Then their times are the same.
/// `costs`: of the graph.
bool is_same(const Quotient& quotient, const TaskGraph& representatives, CostView costs,
             const ResourceTable& pooled);

}  // namespace overlap
