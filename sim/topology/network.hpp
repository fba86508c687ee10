#pragma once

#include <array>
#include <memory>

#include "sim/core/config_reader.hpp"
#include "sim/topology/wiring.hpp"

namespace overlap {

inline const std::array<std::string, 4> network_names{"rails", "fat_tree", "dragonfly", "node_torus"};

/// How many nodes a network joins; ranks are numbered node by node.
struct ClusterSize {
    int nodes = 1;
    int gpus_per_node = 1;
    int gpus() const { return nodes * gpus_per_node; }
};

/// The network between nodes. Every GPU has a NIC of its own (vertex nic<rank>) on a switch; how the switches
/// are joined, and by which of them a route goes, is the generator's rule. Routes follow from the numbers of
/// the two GPUs, so nothing is stored for a pair: memory is that of the links.
class Network {
public:
    virtual ~Network() = default;

    /// Appends the links from GPU `src` by its NIC and the switches to GPU `dst`. One path a pair, no
    /// adaptive routing; where several are equally short, pairs are dealt evenly to them, as static routing
    /// of such networks does. Returns false, and appends nothing, where no switches lead from one to the
    /// other.
    bool append_route(int src, int dst, LinkIds& links) const;
    bool on_one_switch(int a, int b) const;

protected:
    /// Reads what all networks have: "bandwidth_GBps" of a NIC and "latency_us" from GPU to GPU through one
    /// switch, a quarter of which each of the four links takes.
    Network(ConfigObject& config, const ClusterSize& size);

    /// Gives `gpu` its NIC and joins it to a switch, number `number` in the generator's own count.
    void attach(int gpu, VertexId fabric_switch, int number, Wiring& wiring);

private:
    /// Appends the links from switch to switch (numbers as in `attach`, which differ).
    virtual bool append_switches(int from, int to, int src, int dst, LinkIds& links) const = 0;

    struct Port {
        std::size_t to_nic = 0;     ///< link GPU → NIC; the way back is the next number
        std::size_t to_switch = 0;  ///< link NIC → switch; likewise
        int at = 0;                 ///< the switch
    };
    std::vector<Port> ports_;
    BytesPerSecond bandwidth_;
    Seconds latency_;  ///< of each of the four links
};

/// Reads and builds the network of a type in network_names. Throws UserError.
std::shared_ptr<const Network> make_network(std::size_t type, ConfigObject& config, const ClusterSize& size,
                                            Wiring& wiring);

/// Links between switches: "<level>_GBps" and "hop_latency_us".
BytesPerSecond read_bandwidth(ConfigObject& config, const std::string& key);
Seconds read_hop_latency(ConfigObject& config);

}  // namespace overlap
