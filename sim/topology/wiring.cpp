#include "sim/topology/wiring.hpp"

#include <stdexcept>

namespace overlap {

VertexId Wiring::add_vertex(std::string name, bool is_nic) {
    names_.push_back(std::move(name));
    nics_.push_back(is_nic);
    egress.emplace_back();
    return names_.size() - 1;
}

void Wiring::add_link(VertexId from, VertexId to, BytesPerSecond bandwidth, Seconds latency) {
    std::string name = names_[from] + "->" + names_[to];
    if (from == to) throw std::invalid_argument("joins " + names_[from] + " to itself");
    // Spread over the buckets, which the standard hash of numbers that follow one another does not do.
    constexpr std::uint64_t odd = 0x9E3779B97F4A7C15;
    if (!joined_.insert((std::uint64_t{from} << 32 | to) * odd).second)
        throw std::invalid_argument("gives the link " + name + " twice");
    links.push_back({links.size(), std::move(name), bandwidth, latency});
    ends.push_back({from, to});
    egress[from] += bandwidth;
}

std::size_t Wiring::join(VertexId a, VertexId b, BytesPerSecond bandwidth, Seconds latency) {
    add_link(a, b, bandwidth, latency);
    add_link(b, a, bandwidth, latency);
    return links.size() - 2;
}

}  // namespace overlap
