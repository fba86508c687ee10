#pragma once

#include <boost/graph/adjacency_list.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "sim/core/config_reader.hpp"
#include "sim/topology/device.hpp"

namespace overlap {

enum class VertexKind { gpu, nic, fabric_switch };

struct Vertex {
    VertexKind kind = VertexKind::gpu;
    std::string name;
};

/// One direction of a physical connection. Bandwidth is what transfers achieve, not the raw signalling rate.
struct Link {
    std::size_t id = 0;
    std::string name;
    BytesPerSecond bandwidth;
    Seconds latency;
};

/// The links from one GPU to another, in order, and the sum of their latencies.
struct Route {
    std::vector<std::size_t> links;
    Seconds latency;
    bool through_nic = false;
};

/// GPUs, switches and NICs joined by directed links. Immutable once built; ranks are 0 … gpus()−1, node by
/// node.
class Topology {
public:
    /// Contract: `config` is a topology file (configs/schema/topology.schema.json). Throws UserError.
    Topology(ConfigObject config, DeviceSpec device);

    const std::string& name() const { return name_; }
    const std::string& description() const { return description_; }
    const DeviceSpec& device() const { return device_; }
    int gpus() const { return nodes_ * gpus_per_node_; }
    int gpus_per_node() const { return gpus_per_node_; }
    int node_of(int gpu) const { return gpu / gpus_per_node_; }
    const std::vector<Link>& links() const { return links_; }
    /// Sum of the bandwidths of the links that leave (or, being symmetric, enter) a GPU.
    BytesPerSecond egress(int gpu) const;
    /// The route that moves 1 MiB soonest on idle links (latency + 1 MiB / bandwidth a link; ties by lower
    /// vertex number). One path a pair, no adaptive routing. Throws UserError where `dst` can't be reached.
    const Route& route(int src, int dst) const;
    /// Order of the ranks in ring schedules; neighbours in it are neighbours in the machine where that is
    /// possible.
    const std::vector<int>& ring() const { return ring_; }

private:
    using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, Vertex, Link>;
    using VertexId = Graph::vertex_descriptor;

    void add_group(ConfigObject& group);
    void add_rails(BytesPerSecond bandwidth, Seconds latency);
    void add_link(VertexId from, VertexId to, BytesPerSecond bandwidth, Seconds latency);
    void add_both_ways(VertexId a, VertexId b, BytesPerSecond bandwidth, Seconds latency);
    void find_routes();
    void find_routes_from(int source);

    std::string name_;
    std::string description_;
    DeviceSpec device_;
    int nodes_ = 1;
    int gpus_per_node_ = 1;
    Graph graph_;
    std::vector<Link> links_;
    std::vector<Route> routes_;
    std::vector<int> ring_;
};

/// Reads a topology file and the device file it names, which is looked up in `devices`.
Topology read_topology(const std::filesystem::path& path, const std::filesystem::path& devices);

}  // namespace overlap
