#include "sim/topology/network.hpp"

namespace overlap {

std::shared_ptr<const Network> make_rails(ConfigObject&, const ClusterSize&, Wiring&);
std::shared_ptr<const Network> make_fat_tree(ConfigObject&, const ClusterSize&, Wiring&);
std::shared_ptr<const Network> make_dragonfly(ConfigObject&, const ClusterSize&, Wiring&);
std::shared_ptr<const Network> make_node_torus(ConfigObject&, const ClusterSize&, Wiring&);

std::shared_ptr<const Network> make_network(std::size_t type, ConfigObject& config, const ClusterSize& size,
                                            Wiring& wiring) {
    constexpr std::array makers{make_rails, make_fat_tree, make_dragonfly, make_node_torus};
    static_assert(makers.size() == network_names.size());
    return makers[type](config, size, wiring);
}

BytesPerSecond read_bandwidth(ConfigObject& config, const std::string& key) {
    return gigabytes_per_second(config.sourced(key, {1e-3, 1e6}));
}

Seconds read_hop_latency(ConfigObject& config) {
    return microseconds(config.sourced("hop_latency_us", {0, 1e6}));
}

Network::Network(ConfigObject& config, const ClusterSize& size)
    : ports_(static_cast<std::size_t>(size.gpus())),
      bandwidth_(read_bandwidth(config, "bandwidth_GBps")),
      latency_(microseconds(config.sourced("latency_us", {0, 1e6})) / 4) {}

void Network::attach(int gpu, VertexId fabric_switch, int number, Wiring& wiring) {
    const VertexId nic = wiring.add_vertex("nic" + std::to_string(gpu));
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
