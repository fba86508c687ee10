#pragma once

#include <memory>

#include "sim/topology/link_group.hpp"
#include "sim/topology/wiring.hpp"

namespace overlap {

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

    /// Nodes after which the network repeats itself: renaming every node n to n + period() may map its links onto its
    /// links.
    virtual int period() const { return 1; }
    /// What to change to get a network of the same kind for few nodes, with several periods and all kinds of routes.
    struct Smaller {
        int nodes = 8;
        Json values = Json::object();  ///< by key of the network's group
    };
    virtual Smaller smaller() const { return {}; }

protected:
    /// `group` has the bandwidth of a NIC and the latency from GPU to GPU through one switch, a quarter for
    /// each of the four links.
    Network(const LinkGroup& group, const ClusterSize& size);

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

/// Reads and builds the network of a type in group_names. Throws UserError.
std::shared_ptr<const Network> make_network(std::size_t type, ConfigObject& config, const ClusterSize& size,
                                            Wiring& wiring);

}  // namespace overlap
