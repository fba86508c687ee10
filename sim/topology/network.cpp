#include "sim/topology/network.hpp"

namespace overlap {

using Maker = std::shared_ptr<const Network>(ConfigObject&, const LinkGroup&, const ClusterSize&, Wiring&);
Maker make_rails, make_fat_tree, make_dragonfly, make_node_torus;

std::shared_ptr<const Network> make_network(std::size_t type, ConfigObject& config, const ClusterSize& size,
                                            Wiring& wiring) {
    constexpr std::array makers{make_rails, make_fat_tree, make_dragonfly, make_node_torus};
    static_assert(makers.size() + node_group_types == group_names.size());
    return makers[type - node_group_types](config, read_link_group(config, type, size.gpus()), size, wiring);
}

Network::Network(const LinkGroup& group, const ClusterSize& size)
    : ports_(static_cast<std::size_t>(size.gpus())),
      bandwidth_(group.bandwidth),
      latency_(group.latency / 4) {}

void Network::attach(int gpu, VertexId fabric_switch, int number, Wiring& wiring) {
    const VertexId nic = wiring.add_vertex("nic" + std::to_string(gpu), true);
    Port& port = ports_[static_cast<std::size_t>(gpu)];
    port.to_nic = wiring.join(static_cast<VertexId>(gpu), nic, bandwidth_, latency_);
    port.to_switch = wiring.join(nic, fabric_switch, bandwidth_, latency_);
    port.at = number;
}

bool Network::on_one_switch(int a, int b) const {
    return ports_[static_cast<std::size_t>(a)].at == ports_[static_cast<std::size_t>(b)].at;
}

bool Network::append_route(int src, int dst, LinkIds& links) const {
    const Port& from = ports_[static_cast<std::size_t>(src)];
    const Port& to = ports_[static_cast<std::size_t>(dst)];
    const std::size_t first = links.size();
    links.push_back(from.to_nic);
    links.push_back(from.to_switch);
    if (from.at != to.at && !append_switches(from.at, to.at, src, dst, links)) {
        links.resize(first);
        return false;
    }
    links.push_back(to.to_switch + 1);
    links.push_back(to.to_nic + 1);
    return true;
}

}  // namespace overlap
