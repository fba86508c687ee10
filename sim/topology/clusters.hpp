#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/what_if.hpp"

namespace overlap {

/// Clusters of nodes that are alike, which clusters.json lists: a name stands for two nodes, and with a number of GPUs
/// in it for as many nodes as have them ("gpu_rail" of "gpu_8", "gpu_128_rail").
class Clusters {
public:
    /// The topology file of a node, by its name.
    using NodeFile = std::function<Json(const std::string& node)>;

    /// `file`: clusters.json. Throws UserError.
    Clusters(const ConfigFile& file, NodeFile node_file);

    std::vector<std::string> names() const;
    /// The topology file of that name; none if this is no cluster's name. Throws UserError if there can't be as many GPUs.
    std::optional<Json> topology(const std::string& name) const;
    /// The name of cluster `name` with that number of nodes. Throws UserError if there is no such cluster, or if there
    /// can't be as many nodes; errors begin with `place`.
    std::string name_of(const std::string& name, std::int64_t nodes, const std::string& place) const;

private:
    struct Cluster {
        std::string name, node, description;
        Json rails;  ///< its network, as in a topology file
    };
    /// "gpu_rail" and the "128" of "gpu_128_rail".
    const Cluster* find(const std::string& name, std::string& gpus) const;
    Json node(const Cluster& cluster) const { return node_file_(cluster.node); }

    std::vector<Cluster> clusters_;
    NodeFile node_file_;
};

}  // namespace overlap
