#pragma once

#include "sim/topology/topology.hpp"

namespace overlap {

/// GPUs of an island: neighbouring GPUs of a node that are joined more than twice as fast as any two GPUs of different
/// islands. A collective that crosses the slow links once gains by that where the factor is above two. All GPUs of a node
/// where it has no islands, and where there are several nodes, between which NICs are the slow links.
int island_size(const Topology& topology);

/// Nodes, or islands of a single node.
inline int islands(const Topology& topology) {
    return topology.gpus() / island_size(topology);
}

}  // namespace overlap
