#include "sim/topology/node_fabric.hpp"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "sim/core/available_memory.hpp"
#include "sim/core/shown.hpp"

namespace overlap {
namespace {

enum class GroupType { full_mesh, ring, torus, fabric_switch, links };

constexpr std::uint32_t none = ~std::uint32_t{0};

using Pairs = std::vector<std::pair<std::size_t, std::size_t>>;

Pairs mesh_pairs(std::size_t gpus) {
    Pairs pairs;
    for (std::size_t a = 0; a < gpus; ++a)
        for (std::size_t b = a + 1; b < gpus; ++b) pairs.emplace_back(a, b);
    return pairs;
}

Pairs ring_pairs(std::size_t gpus) {
    Pairs pairs;
    for (std::size_t a = 0; a + 1 < gpus; ++a) pairs.emplace_back(a, a + 1);
    if (gpus > 2) pairs.emplace_back(gpus - 1, 0);
    return pairs;
}

Pairs torus_pairs(ConfigObject& group, std::size_t gpus) {
    Pairs pairs;
    const auto dims = group.integers("dims", 1, most_gpus);
    if (std::accumulate(dims.begin(), dims.end(), 1.0, std::multiplies<>()) != static_cast<double>(gpus))
        group.fail("dims", "must multiply to gpus_per_node, " + std::to_string(gpus));
    for (std::size_t a = 0; a < gpus; ++a) {
        std::size_t stride = 1;
        for (const std::int64_t extent : dims) {
            const auto size = static_cast<std::size_t>(extent);
            const std::size_t at = a / stride % size;
            const std::size_t next = a - at * stride + (at + 1) % size * stride;
            // With two GPUs along a dimension, the wrap-around is the same link.
            if (size > 2 || (size == 2 && at == 0)) pairs.emplace_back(a, next);
            stride *= size;
        }
    }
    return pairs;
}

Pairs listed_pairs(ConfigObject& group, std::size_t gpus) {
    Pairs pairs;
    const Json& listed = group.raw("pairs");
    if (!listed.is_array()) group.fail("pairs", "is " + shown(listed) + ", expected an array");
    for (const Json& pair : listed) {
        if (!pair.is_array() || pair.size() != 2 || !pair[0].is_number_unsigned() ||
            !pair[1].is_number_unsigned() || pair[0].get<std::size_t>() >= gpus ||
            pair[1].get<std::size_t>() >= gpus)
            group.fail("pairs", "has " + shown(pair) + ", expected two GPUs of a node, 0 to " +
                                    std::to_string(gpus - 1));
        pairs.emplace_back(pair[0].get<std::size_t>(), pair[1].get<std::size_t>());
    }
    return pairs;
}

}  // namespace

/// Bandwidth and latency of each link of a group.
struct NodeFabric::Reading {
    BytesPerSecond bandwidth;
    Seconds latency;
    Pairs pairs;  ///< of GPUs of one node, connected in both directions
};

void NodeFabric::add_group(std::size_t type, ConfigObject& group, Wiring& wiring) {
    const auto gpus = static_cast<std::size_t>(gpus_);
    Reading reading;
    const LinkGroup numbers = read_link_group(group, type, gpus_);
    reading.bandwidth = numbers.bandwidth;
    reading.latency = numbers.latency;
    switch (static_cast<GroupType>(type)) {
        case GroupType::full_mesh:
            reading.pairs = mesh_pairs(gpus);
            break;
        case GroupType::ring:
            reading.pairs = ring_pairs(gpus);
            break;
        case GroupType::torus:
            reading.pairs = torus_pairs(group, gpus);
            break;
        case GroupType::links:
            reading.pairs = listed_pairs(group, gpus);
            break;
        case GroupType::fabric_switch:
            reading.latency = reading.latency / 2;
            add_switch(reading, group.text("name"), wiring);
            break;
    }
    add_pairs(reading, wiring);
}

void NodeFabric::add_pairs(const Reading& reading, Wiring& wiring) {
    constexpr Bytes of_link{900};  // with its name, and as a resource, in a machine and a copy of it
    const double links = 2.0 * nodes_ * static_cast<double>(reading.pairs.size());
    require_memory_for(std::to_string(std::llround(links)) + " links inside nodes", links * of_link,
                       available_memory());
    const std::size_t first = wiring.links.size();
    for (int node = 0; node < nodes_; ++node)
        for (const auto& [a, b] : reading.pairs) {
            const auto zero = static_cast<std::size_t>(node) * static_cast<std::size_t>(gpus_);
            wiring.join(zero + a, zero + b, reading.bandwidth, reading.latency);
        }
    const std::size_t stride = 2 * reading.pairs.size();
    for (std::size_t i = 0; i < reading.pairs.size(); ++i)
        record(reading.pairs[i].first, reading.pairs[i].second, first + 2 * i, stride, reading);
}

void NodeFabric::add_switch(const Reading& reading, const std::string& name, Wiring& wiring) {
    const auto gpus = static_cast<std::size_t>(gpus_);
    const std::size_t first = wiring.links.size();
    for (int node = 0; node < nodes_; ++node) {
        const std::string prefix = nodes_ > 1 ? "node" + std::to_string(node) + "." : "";
        const VertexId hub = wiring.add_vertex(prefix + name);
        for (std::size_t a = 0; a < gpus; ++a)
            wiring.join(static_cast<std::size_t>(node) * gpus + a, hub, reading.bandwidth, reading.latency);
    }
    for (std::size_t a = 0; a < gpus; ++a) record(a, vertices_, first + 2 * a, 2 * gpus, reading);
    ++vertices_;
}

void NodeFabric::record(std::size_t a, std::size_t b, std::size_t first, std::size_t stride,
                        const Reading& reading) {
    const double time = (reading.latency + routed_size / reading.bandwidth).si();
    links_.push_back({a, b, first, stride, time});
    links_.push_back({b, a, first + 1, stride, time});
}

void NodeFabric::find_routes() {
    using Edge = boost::property<boost::edge_weight_t, double>;
    using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property, Edge>;
    std::vector<std::vector<std::uint32_t>> leaving(vertices_);  // links by the vertex that they leave
    double least_time = std::numeric_limits<double>::max();
    for (std::size_t i = 0; i < links_.size(); ++i) {
        leaving[links_[i].from].push_back(static_cast<std::uint32_t>(i));
        least_time = std::min(least_time, links_[i].unloaded_time);
    }
    // From a vertex connected to all others, no path over two links is faster than a direct link of
    // at most twice the smallest time of any link. So it is in a full mesh, where a search from each
    // GPU would visit every link.
    const auto direct_is_shortest = [&](const std::vector<std::uint32_t>& links) {
        return links.size() + 1 == vertices_ && std::ranges::all_of(links, [&](std::uint32_t i) {
                   return links_[i].unloaded_time <= 2 * least_time;
               });
    };
    std::optional<Graph> graph;
    std::unordered_map<std::uint64_t, std::uint32_t> link_of;  // by both ends
    const auto key = [](std::size_t from, std::size_t to) { return std::uint64_t{from} << 32 | to; };
    std::vector<std::size_t> previous(vertices_);
    for (std::size_t source = 0; source < static_cast<std::size_t>(gpus_); ++source) {
        const std::size_t first = arrival_.size();
        arrival_.resize(first + vertices_, none);
        if (direct_is_shortest(leaving[source])) {
            for (const std::uint32_t link : leaving[source]) arrival_[first + links_[link].to] = link;
            continue;
        }
        if (!graph) {
            graph.emplace(vertices_);
            for (std::size_t i = 0; i < links_.size(); ++i) {
                const NodeLink& link = links_[i];
                boost::add_edge(link.from, link.to, link.unloaded_time, *graph);
                link_of[key(link.from, link.to)] = static_cast<std::uint32_t>(i);
            }
        }
        boost::dijkstra_shortest_paths(*graph, source,
                                       boost::predecessor_map(boost::make_iterator_property_map(
                                           previous.begin(), get(boost::vertex_index, *graph))));
        for (std::size_t at = 0; at < vertices_; ++at)
            if (previous[at] != at) arrival_[first + at] = link_of.at(key(previous[at], at));
    }
}

bool NodeFabric::joins(int src, int dst) const {
    return src == dst ||
           arrival_[static_cast<std::size_t>(src) * vertices_ + static_cast<std::size_t>(dst)] != none;
}

void NodeFabric::append_route(int node, int src, int dst, LinkIds& links) const {
    const std::size_t first = links.size();
    const std::uint32_t* arrival = arrival_.data() + static_cast<std::size_t>(src) * vertices_;
    for (auto at = static_cast<std::size_t>(dst); at != static_cast<std::size_t>(src);) {
        const NodeLink& link = links_[arrival[at]];
        links.push_back(link.id + static_cast<std::size_t>(node) * link.stride);
        at = link.from;
    }
    std::reverse(links.begin() + static_cast<std::ptrdiff_t>(first), links.end());
}

}  // namespace overlap
