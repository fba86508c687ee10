#include "sim/topology/clusters.hpp"

#include <algorithm>
#include <charconv>

#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/topology/topology.hpp"

namespace overlap {
namespace {

constexpr std::int64_t least_nodes = 2;

std::int64_t gpus_of(const Json& node) {
    return node.at("nodes").get<std::int64_t>() * node.at("gpus_per_node").get<std::int64_t>();
}

}  // namespace

Clusters::Clusters(const ConfigFile& file, NodeFile node_file) : node_file_(std::move(node_file)) {
    ConfigObject all = file.view();
    all.version(1);
    all.text("description");
    std::map<std::int64_t, Json> rails;
    for (ConfigObject& nic : all.objects("nics")) {
        const std::int64_t Gbps = nic.integer("Gbps", 1, 100'000);
        Json& group = rails[Gbps] = {{"type", "rails"}};
        for (const char* key : {"bandwidth_GBps", "latency_us"}) group[key] = nic.raw(key);
        nic.finish();
    }
    for (ConfigObject& one : all.objects("clusters")) {
        const std::int64_t Gbps = one.integer("Gbps", 1, 100'000);
        if (!rails.contains(Gbps)) one.fail("Gbps", "is " + std::to_string(Gbps) + ", the rate of no NIC");
        clusters_.push_back({one.text("name"), one.text("node"),
                             "one NIC of " + std::to_string(Gbps) + " Gb/s a GPU (" + one.text("source") +
                                 "), NIC i of every node on leaf switch i.",
                             rails[Gbps]});
        one.finish();
    }
    all.finish();
}

std::vector<std::string> Clusters::names() const {
    return mapped(clusters_, &Cluster::name);
}

const Clusters::Cluster* Clusters::find(const std::string& name, std::string& gpus) const {
    for (const Cluster& cluster : clusters_) {
        const std::size_t middle = cluster.name.rfind('_');
        const std::string first = cluster.name.substr(0, middle), last = cluster.name.substr(middle);
        if (name == cluster.name) return &cluster;
        if (!name.starts_with(first + "_") || !name.ends_with(last) ||
            name.size() <= first.size() + 1 + last.size())
            continue;
        gpus = name.substr(first.size() + 1, name.size() - first.size() - 1 - last.size());
        if (gpus.find_first_not_of("0123456789") == std::string::npos) return &cluster;
    }
    return nullptr;
}

std::optional<Json> Clusters::topology(const std::string& name) const {
    std::string given;
    const Cluster* cluster = find(name, given);
    if (cluster == nullptr) return std::nullopt;
    Json json = node(*cluster);
    const std::int64_t of_node = gpus_of(json), most = most_gpus / of_node * of_node;
    std::int64_t gpus = least_nodes * of_node;
    if (!given.empty()) {
        const auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), gpus);
        if (error != std::errc() || gpus % of_node != 0 || gpus < least_nodes * of_node || gpus > most)
            throw UserError(name + ": has " + given + " GPUs, expected a multiple of the " +
                            std::to_string(of_node) + " of a node, " + std::to_string(least_nodes * of_node) +
                            " to " + std::to_string(most));
    }
    json["name"] = name;
    json["description"] =
        std::to_string(gpus / of_node) + " nodes as " + cluster->node + "; " + cluster->description;
    json["nodes"] = gpus / of_node;
    json["fabric"].push_back(cluster->rails);
    return json;
}

std::string Clusters::name_of(const std::string& name, std::int64_t nodes, const std::string& place) const {
    const auto cluster = std::ranges::find(clusters_, name, &Cluster::name);
    if (cluster == clusters_.end())
        throw UserError(place + "--nodes goes with " + joined(names()) + ", not with " + in_quotes(name) +
                        " (its file says how many it has; --what-if topology.nodes=4 changes that)");
    const std::int64_t of_node = gpus_of(node(*cluster)), most = most_gpus / of_node;
    if (nodes < least_nodes || nodes > most)
        throw UserError(place + "--nodes is " + std::to_string(nodes) + ", expected " +
                        std::to_string(least_nodes) + " to " + std::to_string(most) + " for " + name);
    const std::size_t middle = name.rfind('_');
    return name.substr(0, middle) + '_' + std::to_string(nodes * of_node) + name.substr(middle);
}

}  // namespace overlap
