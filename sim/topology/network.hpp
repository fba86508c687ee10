#pragma once

#include <array>
#include <memory>

#include "sim/core/config_reader.hpp"
#include "sim/topology/wiring.hpp"

namespace overlap {

inline const std::array<std::string, 4> network_names{"rails", "fat_tree", "dragonfly", "node_torus"};

/// Number of nodes in a network; ranks are numbered node by node.
struct ClusterSize {
    int nodes = 1;
    int gpus_per_node = 1;
    int gpus() const { return nodes * gpus_per_node; }
};

/// The network between nodes. Every GPU has a NIC of its own (vertex nic<rank>) on a switch. Each generator
/// has its own rule for connecting switches and for routes. A route follows from the numbers of the two GPUs,
/// so nothing is stored for a pair, and memory is that of the links.
class Network {
public:
    virtual ~Network() = default;

    /// Appends the links from GPU `src` through its NIC and the switches to GPU `dst`. One path for each
    /// pair, no adaptive routing; pairs are spread evenly over equally short paths, as in static routing of
    /// such networks. Returns false, and appends nothing, if no switches connect the two.
    bool append_route(int src, int dst, LinkIds& links) const;
    bool on_one_switch(int a, int b) const;

protected:
    /// Reads the values of all networks: "bandwidth_GBps" of a NIC, and "latency_us" from GPU to GPU through
    /// one switch, a quarter for each of the four links.
    Network(ConfigObject& config, const ClusterSize& size);

    /// Gives `gpu` its NIC and connects it to switch `number`, in the generator's own numbering.
    void attach(int gpu, VertexId fabric_switch, int number, Wiring& wiring);

private:
    /// Appends the links from switch to switch (numbers as in `attach`; they differ).
    virtual bool append_switches(int from, int to, int src, int dst, LinkIds& links) const = 0;

    struct Port {
        std::size_t to_nic = 0;     ///< link GPU → NIC; the reverse link has the next number
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
