#pragma once

#include "sim/topology/topology.hpp"

namespace overlap {

/// GPUs of an island: neighbouring GPUs of a node, any two of which are joined faster than any two GPUs of different
/// islands. Islands are all joined to each other, from each GPU to the one of its place in the other island, without
/// another GPU between them. Where a node has no islands, or where there are several nodes: all GPUs of a node.
int island_size(const Topology& topology);

/// Nodes, or islands of a single node.
inline int islands(const Topology& topology) {
    return topology.gpus() / island_size(topology);
}

/// Whether an all-gather among islands of a node ends sooner if each piece crosses the links between islands once and
/// is sent on inside. By the time of the busiest link and, of copies by DMA, of the busiest GPU's engines. Where each
/// pair of GPUs has its own link, crossing several times costs nothing, and sending on does.
bool gains_by_crossing_once(const Topology& topology, bool by_dma);

}  // namespace overlap
