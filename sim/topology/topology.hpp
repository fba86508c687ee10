#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/config_reader.hpp"
#include "sim/topology/device.hpp"
#include "sim/topology/network.hpp"
#include "sim/topology/node_fabric.hpp"

namespace overlap {

/// The links from one GPU to another, in order, and the sum of their latencies.
struct Route {
    LinkIds links;
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
    int gpus() const { return size_.gpus(); }
    int gpus_per_node() const { return size_.gpus_per_node; }
    int nodes() const { return size_.nodes; }
    int node_of(int gpu) const { return gpu / size_.gpus_per_node; }
    /// Whether the GPUs have NICs, by which nodes are joined.
    bool has_network() const { return network_ != nullptr; }
    const std::vector<Link>& links() const { return links_; }
    /// Sum of the bandwidths of the links that leave (or, being symmetric, enter) a GPU.
    BytesPerSecond egress(int gpu) const { return egress_[static_cast<std::size_t>(gpu)]; }
    /// One path a pair, no adaptive routing. Inside a node as NodeFabric finds it; between nodes as Network
    /// has it from NIC to NIC. Where the NIC in the destination's node that has the source's number in the
    /// node (its rail) is on the source's own switch, and that way moves 1 MiB sooner on idle links or is the
    /// only one, the route arrives there and goes on inside the node. It is put together from a table of a
    /// node and rules of the network each time; nothing is kept for a pair. Throws UserError where `dst`
    /// can't be reached.
    Route route(int src, int dst) const;
    /// Order of the ranks in ring schedules; neighbours in it are neighbours in the machine where that is
    /// possible.
    const std::vector<int>& ring() const { return ring_; }

private:
    void add_group(ConfigObject& group, NodeFabric& fabric, Wiring& wiring);
    std::vector<int> read_ring(ConfigObject& config) const;
    /// Time of 1 MiB over links of which each forwards when it has all; the measure of routes.
    double unloaded_time(const LinkIds& links) const;

    std::string name_;
    std::string description_;
    DeviceSpec device_;
    ClusterSize size_;
    std::vector<Link> links_;
    std::vector<BytesPerSecond> egress_;
    std::shared_ptr<const NodeFabric> node_;
    std::shared_ptr<const Network> network_;  ///< null where the GPUs have no NICs
    std::vector<int> ring_;
};

/// The files that describe a machine, as read, or as changed by a what-if.
struct MachineFiles {
    ConfigFile topology, device;
    std::optional<ConfigFile> calibration;  ///< of the device, where there is one
};
/// Reads a topology file and the device file it names, which is looked up in `devices`, with the calibration
/// of the same name if there is one in `calibrations`. Throws UserError.
MachineFiles read_machine_files(const std::filesystem::path& path, const std::filesystem::path& devices,
                                const std::filesystem::path& calibrations = {}, const WhatIf& what_if = {});
Topology read_topology(const MachineFiles& files);

}  // namespace overlap
