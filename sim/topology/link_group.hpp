#pragma once

#include "sim/core/fields.hpp"

namespace overlap {

inline constexpr int most_gpus = 131072;

/// Types of groups: those inside every node, then networks between nodes.
inline const std::array<std::string, 9> group_names{
    "full_mesh", "ring", "torus", "switch", "links", "rails", "fat_tree", "dragonfly", "node_torus"};
inline constexpr std::size_t node_group_types = 5;

enum class Leaves { nodes, rails };
inline const std::array<std::string, 2> leaf_names{"nodes", "rails"};

/// Numbers of a group of links, of which each type has some. What they mean stands in the table of
/// link_group.cpp.
struct LinkGroup {
    BytesPerSecond bandwidth, spine, local, global, link;
    Seconds latency, hop;
    Leaves leaves = Leaves::nodes;
    int leaf_ports = 1, spines = 1;
    int router_ports = 1, group_routers = 1, global_links = 1;
};

/// Reads the numbers of a group of that type in a cluster of `gpus`. Throws UserError.
LinkGroup read_link_group(ConfigObject& config, std::size_t type, int gpus);

/// JSON schema of a group of links.
Json link_group_schema();

}  // namespace overlap
