#pragma once

#include "sim/topology/link_group.hpp"
#include "sim/topology/wiring.hpp"

namespace overlap {

/// The fabric inside a node, equal in every node, and the routes between the node's GPUs: the paths that move
/// 1 MiB soonest on idle links (latency + 1 MiB / bandwidth for each link; ties by lower vertex number).
/// Memory: 4 bytes × GPUs of a node × GPUs and switches of a node, whatever the number of nodes.
class NodeFabric {
public:
    NodeFabric(int nodes, int gpus) : nodes_(nodes), gpus_(gpus), vertices_(static_cast<std::size_t>(gpus)) {}

    /// Reads one group of links (of one of the first node_group_types) and adds it to every node. Throws UserError,
    /// and std::invalid_argument for a link given twice.
    void add_group(std::size_t type, ConfigObject& group, Wiring& wiring);
    /// Call it once, after the last group.
    void find_routes();

    /// Whether links inside a node connect the two GPUs (numbers in the node).
    bool joins(int src, int dst) const;
    /// Appends the route within node `node`.
    void append_route(int node, int src, int dst, LinkIds& links) const;

private:
    /// A link of node 0; the same link of node n has the number id + n·stride.
    struct NodeLink {
        std::size_t from = 0, to = 0;
        std::size_t id = 0, stride = 0;
        double unloaded_time = 0;  ///< of 1 MiB, seconds
    };
    struct Reading;

    void add_pairs(const Reading& reading, Wiring& wiring);
    void add_switch(const Reading& reading, const std::string& name, Wiring& wiring);
    void record(std::size_t a, std::size_t b, std::size_t first, std::size_t stride, const Reading& reading);

    int nodes_;
    int gpus_;
    std::size_t vertices_;  ///< of a node: GPUs, then switches
    std::vector<NodeLink> links_;
    /// The link of links_ by which the route from a source arrives at a vertex; `none` if there is no route.
    std::vector<std::uint32_t> arrival_;
};

}  // namespace overlap
