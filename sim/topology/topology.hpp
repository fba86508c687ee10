#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/config_reader.hpp"
#include "sim/core/operators.hpp"
#include "sim/topology/derived_values.hpp"
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

/// GPUs, switches and NICs connected by directed links. Immutable once built;
/// ranks are 0 … gpus()−1, node by node.
class Topology {
public:
    /// Contract: `config` is a topology file (configs/schema/topology.schema.json). Throws UserError.
    Topology(ConfigObject config, DeviceSpec device);

    const std::string& name() const { return name_; }
    const DeviceSpec& device() const { return *device_; }
    int gpus() const { return size_.gpus(); }
    int gpus_per_node() const { return size_.gpus_per_node; }
    int nodes() const { return size_.nodes; }
    int node_of(int gpu) const { return gpu / size_.gpus_per_node; }
    /// Whether the GPUs have NICs, which connect nodes.
    bool has_network() const { return network_ != nullptr; }
    const std::vector<Link>& links() const { return *links_; }
    /// Nodes after which the network between them repeats itself, as far as the network knows.
    int period() const { return network_ == nullptr ? 1 : network_->period(); }
    /// What-ifs that make it a machine of the same kind with few nodes; none if it has no network.
    Json smaller() const;
    /// Sum of the bandwidths of the links that leave a GPU inside its node (equal to those that enter it); of its
    /// NICs where a node has one GPU.
    BytesPerSecond egress(int gpu) const { return egress_[static_cast<std::size_t>(gpu)]; }
    /// One path for each pair, no adaptive routing. Inside a node the route is NodeFabric's; between nodes it
    /// is Network's from NIC to NIC. The route may arrive at another NIC of the destination's node and
    /// continue inside the node: at the NIC with the source's number in its node (its rail), if that NIC is
    /// on the source's own switch and the way moves 1 MiB sooner on idle links, or is the only way. Routes
    /// are computed on demand from a node's table and the network's rules; nothing is stored for a pair.
    /// Throws UserError if `dst` can't be reached.
    Route route(int src, int dst) const;
    /// Speed of the GPU's GEMMs, relative to the device's: below 1 where it is degraded.
    double gemm_speed(int gpu) const {
        return gemm_speed_.empty() ? 1 : gemm_speed_[static_cast<std::size_t>(whole_rank(gpu))];
    }
    bool is_degraded() const { return is_degraded_; }
    /// Order of the ranks in ring schedules; its neighbours are neighbours in the machine where possible.
    const std::vector<int>& ring() const { return ring_; }

    /// Each group as a topology of its own with ranks 0 … size − 1, by its lowest rank; this one if the group is all
    /// GPUs. Links, their numbers and the routes over them are those of this topology. Throws UserError if the groups
    /// do not take in every GPU once, or a group has more GPUs in one node than in another. Of a list of ranks one
    /// group; where it has more GPUs in one node than in another, each GPU counts as a node of its own.
    std::vector<Topology> groups(const RankGroup& group) const;
    /// The group of a larger topology that this topology is; RankGroup() if this topology is no group.
    const RankGroup& group() const { return group_; }
    /// Share of the bandwidth between `gpu` and its node that leads to GPUs of `group`, a group within one node: 1
    /// through a switch, 3/7 for 4 of 8 GPUs on a full mesh.
    double share_of_links(int gpu, const RankGroup& group) const;
    /// Rank of GPU `rank` in the larger topology.
    int whole_rank(int rank) const { return group_.is_all() ? rank : group_.member(first_, rank); }

private:
    /// The group whose lowest rank is `first`.
    Topology(const Topology& whole, const RankGroup& group, int first);
    /// The route between ranks of the whole topology.
    Route whole_route(int src, int dst) const;
    void add_group(ConfigObject& group, std::size_t place, NodeFabric& fabric, Wiring& wiring);
    void read_degraded(ConfigObject& config, Wiring& wiring);
    std::vector<int> read_ring(ConfigObject& config) const;
    /// Time of 1 MiB over links that each forward the whole message (store and
    /// forward); the measure of routes.
    double unloaded_time(const LinkIds& links) const;

    std::string name_;
    std::shared_ptr<const DeviceSpec> device_;
    ClusterSize size_, whole_;
    RankGroup group_;
    int first_ = 0;  ///< lowest rank of the group
    std::shared_ptr<const std::vector<Link>> links_;
    std::vector<BytesPerSecond> egress_;
    std::vector<double> gemm_speed_;  ///< by GPU of the whole machine; empty where all are 1
    bool is_degraded_ = false;
    std::shared_ptr<const NodeFabric> node_;
    std::shared_ptr<const Network> network_;  ///< null if the GPUs have no NICs
    std::size_t network_group_ = 0;           ///< its place in `fabric`
    std::vector<int> ring_;
};

/// JSON schema of a topology file.
Json topology_schema();

/// The files of a machine, as read or as changed by a what-if.
struct MachineFiles {
    ConfigFile topology, device;
    std::optional<ConfigFile> calibration;  ///< see calibration_of; none without `calibrations`
    std::optional<ConfigFile> fitted;       ///< the calibration without the what-if, if that changed it
    std::vector<ChangedValue> moved;        ///< values that follow those of the what-if
};
/// The files of the machine of a topology file: its device file, found beside the topology or in `devices`, and the
/// device's calibration. Throws UserError.
MachineFiles read_machine_files(ConfigFile topology, const std::filesystem::path& devices,
                                const std::filesystem::path& calibrations = {}, const WhatIf& what_if = {},
                                Json (*calibration_schema)() = nullptr);
Topology read_topology(const MachineFiles& files);

}  // namespace overlap
