#include "sim/topology/topology.hpp"

#include <algorithm>
#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <boost/property_map/function_property_map.hpp>
#include <functional>
#include <numeric>

namespace overlap {
namespace {

const std::array<std::string, 6> group_types{"full_mesh", "ring", "torus", "switch", "links", "rails"};
enum class GroupType { full_mesh, ring, torus, fabric_switch, links, rails };

constexpr int most_gpus = 4096;
constexpr Bytes routed_size{1048576.0};

}  // namespace

Topology::Topology(ConfigObject config, DeviceSpec device) : device_(std::move(device)) {
    config.integer("schema", 1, 1);
    name_ = config.text("name");
    description_ = config.text("description");
    config.text("device");
    nodes_ = static_cast<int>(config.integer("nodes", 1, most_gpus));
    gpus_per_node_ = static_cast<int>(config.integer("gpus_per_node", 1, most_gpus));
    if (gpus() > most_gpus)
        config.fail("nodes", "gives " + std::to_string(gpus()) + " GPUs, at most 4096 are allowed");

    for (int g = 0; g < gpus(); ++g)
        boost::add_vertex(Vertex{VertexKind::gpu, "gpu" + std::to_string(g)}, graph_);
    for (ConfigObject& group : config.objects("fabric")) {
        try {
            add_group(group);
        } catch (const std::invalid_argument& error) {
            group.fail("", error.what());
        }
    }

    std::vector<int> order(static_cast<std::size_t>(gpus_per_node_));
    std::iota(order.begin(), order.end(), 0);
    if (config.has("ring")) {
        const auto given = config.integers("ring", 0, gpus_per_node_ - 1);
        order.assign(given.begin(), given.end());
        std::vector<int> sorted = order;
        std::sort(sorted.begin(), sorted.end());
        if (static_cast<int>(order.size()) != gpus_per_node_ ||
            std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
            config.fail("ring", "must name each GPU of a node exactly once");
    }
    for (int node = 0; node < nodes_; ++node)
        for (const int local : order) ring_.push_back(node * gpus_per_node_ + local);
    config.finish();
    find_routes();
}

void Topology::add_group(ConfigObject& group) {
    const auto type = static_cast<GroupType>(group.choice("type", group_types));
    const BytesPerSecond bandwidth = gigabytes_per_second(group.sourced("bandwidth_GBps", {1e-3, 1e6}));
    const Seconds latency = microseconds(group.sourced("latency_us", {0, 1e6}));
    const auto per_node = static_cast<std::size_t>(gpus_per_node_);
    std::vector<std::pair<std::size_t, std::size_t>> pairs;  // of GPUs of one node, joined both ways

    switch (type) {
        case GroupType::full_mesh:
            for (std::size_t a = 0; a < per_node; ++a)
                for (std::size_t b = a + 1; b < per_node; ++b) pairs.emplace_back(a, b);
            break;
        case GroupType::ring:
            for (std::size_t a = 0; a + 1 < per_node; ++a) pairs.emplace_back(a, a + 1);
            if (per_node > 2) pairs.emplace_back(per_node - 1, 0);
            break;
        case GroupType::torus: {
            const auto dims = group.integers("dims", 1, most_gpus);
            if (std::accumulate(dims.begin(), dims.end(), 1.0, std::multiplies<>()) != gpus_per_node_)
                group.fail("dims", "must multiply to gpus_per_node, " + std::to_string(gpus_per_node_));
            for (std::size_t a = 0; a < per_node; ++a) {
                std::size_t stride = 1;
                for (const std::int64_t extent : dims) {
                    const auto size = static_cast<std::size_t>(extent);
                    const std::size_t at = a / stride % size;
                    const std::size_t next = a - at * stride + (at + 1) % size * stride;
                    // With two along a dimension, the way round is the same link.
                    if (size > 2 || (size == 2 && at == 0)) pairs.emplace_back(a, next);
                    stride *= size;
                }
            }
            break;
        }
        case GroupType::links: {
            const Json& listed = group.raw("pairs");
            if (!listed.is_array()) group.fail("pairs", "is " + listed.dump() + ", expected an array");
            for (const Json& pair : listed) {
                if (!pair.is_array() || pair.size() != 2 || !pair[0].is_number_unsigned() ||
                    !pair[1].is_number_unsigned() || pair[0].get<std::size_t>() >= per_node ||
                    pair[1].get<std::size_t>() >= per_node)
                    group.fail("pairs", "has " + pair.dump() + ", expected two GPUs of a node, 0 to " +
                                            std::to_string(per_node - 1));
                pairs.emplace_back(pair[0].get<std::size_t>(), pair[1].get<std::size_t>());
            }
            break;
        }
        case GroupType::fabric_switch: {
            const std::string name = group.text("name");
            for (int node = 0; node < nodes_; ++node) {
                const std::string prefix = nodes_ > 1 ? "node" + std::to_string(node) + "." : "";
                const VertexId hub =
                    boost::add_vertex(Vertex{VertexKind::fabric_switch, prefix + name}, graph_);
                for (std::size_t a = 0; a < per_node; ++a)
                    add_both_ways(static_cast<std::size_t>(node) * per_node + a, hub, bandwidth, latency / 2);
            }
            break;
        }
        case GroupType::rails:
            add_rails(bandwidth, latency);
            break;
    }
    for (int node = 0; node < nodes_; ++node)
        for (const auto& [a, b] : pairs) {
            const std::size_t first = static_cast<std::size_t>(node) * per_node;
            add_both_ways(first + a, first + b, bandwidth, latency);
        }
    group.finish();
}

// Each GPU has a NIC of its own; NIC i of every node is on leaf switch i. A route between GPUs of different
// rails first changes rail inside a node.
void Topology::add_rails(BytesPerSecond bandwidth, Seconds latency) {
    const auto per_node = static_cast<std::size_t>(gpus_per_node_);
    for (std::size_t rail = 0; rail < per_node; ++rail) {
        const VertexId leaf =
            boost::add_vertex(Vertex{VertexKind::fabric_switch, "leaf" + std::to_string(rail)}, graph_);
        for (std::size_t node = 0; node < static_cast<std::size_t>(nodes_); ++node) {
            const VertexId gpu = node * per_node + rail;
            const VertexId nic =
                boost::add_vertex(Vertex{VertexKind::nic, "nic" + std::to_string(gpu)}, graph_);
            add_both_ways(gpu, nic, bandwidth, latency / 4);
            add_both_ways(nic, leaf, bandwidth, latency / 4);
        }
    }
}

void Topology::add_link(VertexId from, VertexId to, BytesPerSecond bandwidth, Seconds latency) {
    const std::string name = graph_[from].name + "->" + graph_[to].name;
    if (from == to) throw std::invalid_argument("joins " + graph_[from].name + " to itself");
    if (boost::edge(from, to, graph_).second)
        throw std::invalid_argument("gives the link " + name + " twice");
    const Link link{links_.size(), name, bandwidth, latency};
    links_.push_back(link);
    boost::add_edge(from, to, link, graph_);
}

void Topology::add_both_ways(VertexId a, VertexId b, BytesPerSecond bandwidth, Seconds latency) {
    add_link(a, b, bandwidth, latency);
    add_link(b, a, bandwidth, latency);
}

void Topology::find_routes() {
    routes_.resize(static_cast<std::size_t>(gpus()) * static_cast<std::size_t>(gpus()));
    for (int source = 0; source < gpus(); ++source) find_routes_from(source);
}

void Topology::find_routes_from(int source) {
    const std::size_t vertices = boost::num_vertices(graph_);
    std::vector<VertexId> previous(vertices);
    const auto unloaded_time =
        boost::make_function_property_map<Graph::edge_descriptor>([this](Graph::edge_descriptor e) {
            return (graph_[e].latency + routed_size / graph_[e].bandwidth).si();
        });
    boost::dijkstra_shortest_paths(
        graph_, static_cast<VertexId>(source),
        boost::predecessor_map(
            boost::make_iterator_property_map(previous.begin(), get(boost::vertex_index, graph_)))
            .weight_map(unloaded_time));
    for (int target = 0; target < gpus(); ++target) {
        Route& route = routes_[static_cast<std::size_t>(source * gpus() + target)];
        for (auto at = static_cast<VertexId>(target); previous[at] != at; at = previous[at]) {
            const Link& link = graph_[boost::edge(previous[at], at, graph_).first];
            route.links.push_back(link.id);
            route.latency += link.latency;
            route.through_nic = route.through_nic || graph_[at].kind == VertexKind::nic;
        }
        std::reverse(route.links.begin(), route.links.end());
    }
}

BytesPerSecond Topology::egress(int gpu) const {
    BytesPerSecond sum;
    for (auto [edge, end] = boost::out_edges(static_cast<VertexId>(gpu), graph_); edge != end; ++edge)
        sum += graph_[*edge].bandwidth;
    return sum;
}

const Route& Topology::route(int src, int dst) const {
    const Route& found = routes_.at(static_cast<std::size_t>(src * gpus() + dst));
    if (found.links.empty() && src != dst)
        throw UserError("topology " + name_ + ": no route from gpu" + std::to_string(src) + " to gpu" +
                        std::to_string(dst) + " (add a group to /fabric that joins them)");
    return found;
}

Topology read_topology(const std::filesystem::path& path, const std::filesystem::path& devices) {
    const Json json = read_json_file(path);
    ConfigObject config(json, path.string());
    std::string device = config.text("device");
    if (!device.ends_with(".json")) device += ".json";
    if (!std::filesystem::exists(devices / device)) {
        std::vector<std::string> known;
        for (const auto& entry : std::filesystem::directory_iterator(devices))
            known.push_back(entry.path().filename().string());
        std::sort(known.begin(), known.end());
        config.fail("device",
                    "is '" + device + "', no such file in " + devices.string() + suggestion(device, known));
    }
    return {config, read_device(devices / device)};
}

}  // namespace overlap
