#include "sim/topology/topology.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include "sim/core/file_kind.hpp"
#include "sim/core/file_version.hpp"
#include "sim/core/shown.hpp"
#include "sim/topology/degraded.hpp"
#include "sim/topology/device_schema.hpp"
#include "sim/topology/like_device.hpp"

namespace overlap {
namespace {

std::span<const Field<ClusterSize>> size_fields() {
    static const std::array rows{
        field<&ClusterSize::nodes>("nodes", "Nodes, all alike.").plain_in({1, most_gpus}),
        field<&ClusterSize::gpus_per_node>("gpus_per_node", "GPUs in a node.").plain_in({1, most_gpus})};
    return rows;
}

}  // namespace

Topology::Topology(ConfigObject config, DeviceSpec device)
    : device_(std::make_shared<const DeviceSpec>(std::move(device))) {
    config.version(newest_version("topology"));
    name_ = config.text("name");
    config.text("description");
    config.text("device");
    read_fields(config, size_, size_fields());
    if (gpus() > most_gpus)
        config.fail("nodes", "gives " + std::to_string(gpus()) + " GPUs, at most " +
                                 std::to_string(most_gpus) + " are allowed");

    Wiring wiring;
    NodeFabric fabric(size_.nodes, size_.gpus_per_node);
    for (int gpu = 0; gpu < gpus(); ++gpu) wiring.add_vertex("gpu" + std::to_string(gpu));
    std::size_t place = 0;
    for (ConfigObject& group : config.objects("fabric")) {
        try {
            add_group(group, place++, fabric, wiring);
        } catch (const std::invalid_argument& error) {
            group.fail("", error.what());
        }
    }
    read_degraded(config, wiring);
    ring_ = read_ring(config);
    config.finish();

    fabric.find_routes();
    node_ = std::make_shared<const NodeFabric>(std::move(fabric));
    links_ = std::make_shared<const std::vector<Link>>(std::move(wiring.links));
    egress_ = std::move(wiring.egress);
    egress_.resize(static_cast<std::size_t>(gpus()));
    whole_ = size_;
}

void Topology::add_group(ConfigObject& group, std::size_t place, NodeFabric& fabric, Wiring& wiring) {
    const std::size_t type = group.choice("type", group_names);
    if (type < node_group_types) {
        fabric.add_group(type, group, wiring);
    } else {
        if (network_ != nullptr) group.fail("type", "is a second network between nodes, only one is allowed");
        const std::vector<BytesPerSecond> in_node = wiring.egress;
        network_ = make_network(type, group, size_, wiring);
        network_group_ = place;
        if (size_.gpus_per_node > 1) wiring.egress = in_node;
    }
    group.finish();
}

Json Topology::smaller() const {
    if (network_ == nullptr) return Json::object();
    const Network::Smaller smaller = network_->smaller();
    Json what_ifs{{"topology.nodes", smaller.nodes}};
    for (const auto& [key, value] : smaller.values.items())
        what_ifs["topology.fabric." + std::to_string(network_group_) + '.' + key] = value;
    return what_ifs;
}

void Topology::read_degraded(ConfigObject& config, Wiring& wiring) {
    for (const Degraded& one : degrade(config, size_, has_network(), wiring)) {
        is_degraded_ = true;
        if (one.gemm_speed == 1) continue;
        gemm_speed_.resize(static_cast<std::size_t>(gpus()), 1);
        for (int node = 0; node < nodes(); ++node)
            if (one.node == Degraded::all || one.node == node)
                gemm_speed_[static_cast<std::size_t>(node * gpus_per_node() + one.gpu)] *= one.gemm_speed;
    }
}

std::vector<int> Topology::read_ring(ConfigObject& config) const {
    const int per_node = gpus_per_node();
    std::vector<int> order(static_cast<std::size_t>(per_node));
    std::iota(order.begin(), order.end(), 0);
    if (config.has("ring")) {
        const auto given = config.integers("ring", 0, per_node - 1);
        order.assign(given.begin(), given.end());
        std::vector<int> sorted = order;
        std::ranges::sort(sorted);
        if (static_cast<int>(order.size()) != per_node || std::ranges::adjacent_find(sorted) != sorted.end())
            config.fail("ring", "must name each GPU of a node exactly once");
    }
    std::vector<int> ring;
    for (int node = 0; node < nodes(); ++node)
        for (const int local : order) ring.push_back(node * per_node + local);
    return ring;
}

double Topology::unloaded_time(const LinkIds& links) const {
    Seconds sum;
    for (const std::size_t link : links)
        sum += (*links_)[link].latency + routed_size / (*links_)[link].bandwidth;
    return sum.si();
}

Topology::Topology(const Topology& whole, const RankGroup& group, int first) : Topology(whole) {
    group_ = group;
    first_ = first;
    name_ += (group.ranks != nullptr ? ", a group of " : " in groups of ") + std::to_string(group.size) +
             (group.stride > 1 ? ", stride " + std::to_string(group.stride) : "");
    std::vector<int> in_node(static_cast<std::size_t>(whole.nodes()));
    egress_.clear();
    for (int rank = 0; rank < group.size; ++rank) {
        ++in_node[static_cast<std::size_t>(whole.node_of(whole_rank(rank)))];
        egress_.push_back(whole.egress(whole_rank(rank)));
    }
    in_node.erase(std::remove(in_node.begin(), in_node.end(), 0), in_node.end());
    const bool uneven = std::ranges::adjacent_find(in_node, std::not_equal_to<>()) != in_node.end();
    if (uneven && group.ranks == nullptr)
        throw UserError("a group of " + std::to_string(group.size) + " GPUs, each " +
                        std::to_string(group.stride) + " behind the one before, has " +
                        std::to_string(in_node.front()) + " GPUs in one node of " + name_ + " and " +
                        std::to_string(in_node.back()) + " in another (allowed: as many in each)");
    size_ =
        uneven ? ClusterSize{group.size, 1} : ClusterSize{static_cast<int>(in_node.size()), in_node.front()};
    ring_.clear();
    std::map<int, int> places;
    for (int rank = 0; rank < group.size; ++rank) places[whole_rank(rank)] = rank;
    for (const int rank : whole.ring())
        if (const auto found = places.find(rank); found != places.end()) ring_.push_back(found->second);
}

std::vector<Topology> Topology::groups(const RankGroup& group) const {
    if (group.is_all()) return {*this};
    if (group.ranks != nullptr) {
        if (group.ranks->back() >= gpus())
            throw UserError("a group has rank " + std::to_string(group.ranks->back()) + ", but " + name_ +
                            " has " + std::to_string(gpus()) + " GPUs");
        return {Topology(*this, group, group.ranks->front())};
    }
    if (gpus() % (group.size * group.stride) != 0)
        throw UserError("groups of " + std::to_string(group.size) + " GPUs, each " +
                        std::to_string(group.stride) + " behind the one before, do not take in all " +
                        std::to_string(gpus()) + " GPUs of " + name_ +
                        " (allowed: size times stride divides their number)");
    std::vector<Topology> result;
    for (int rank = 0; rank < gpus(); ++rank)
        if (group.first(rank) == rank) result.push_back(Topology(*this, group, rank));
    for (const Topology& other : result)
        if (other.nodes() != result.front().nodes())
            throw UserError("groups of " + std::to_string(group.size) + " GPUs, each " +
                            std::to_string(group.stride) + " behind the one before, are not alike: some of " +
                            name_ + " are in " + std::to_string(result.front().nodes()) + " nodes, some in " +
                            std::to_string(other.nodes()));
    return result;
}

double Topology::share_of_links(int gpu, const RankGroup& group) const {
    const RankGroup& part = group.is_all() ? group_ : group;
    if (part.is_all()) return 1;
    const int self = whole_rank(gpu), first = self / whole_.gpus_per_node * whole_.gpus_per_node;
    std::set<std::size_t> to_node, to_group;
    for (int peer = first; peer < first + whole_.gpus_per_node; ++peer) {
        if (peer == self) continue;
        const std::size_t link = whole_route(self, peer).links.front();
        to_node.insert(link);
        if (part.joins(peer, self)) to_group.insert(link);
    }
    const auto bandwidth = [&](const std::set<std::size_t>& of) {
        double sum = 0;
        for (const std::size_t link : of) sum += (*links_)[link].bandwidth.si();
        return sum;
    };
    return to_group.empty() ? 1 : bandwidth(to_group) / bandwidth(to_node);
}

Route Topology::route(int src, int dst) const {
    return whole_route(whole_rank(src), whole_rank(dst));
}

Route Topology::whole_route(int src, int dst) const {
    const int per_node = whole_.gpus_per_node;
    const int local = src % per_node, target = dst % per_node, node = dst / per_node;
    const bool same_node = src / per_node == node;
    Route route;
    bool found = same_node && node_->joins(local, target);
    if (found) node_->append_route(node, local, target, route.links);
    const auto offer = [&](const LinkIds& links) {
        if (found && unloaded_time(links) >= unloaded_time(route.links)) return;
        route.links = links;
        found = route.through_nic = true;
    };
    if (network_ != nullptr && src != dst) {
        LinkIds links;
        if (network_->append_route(src, dst, links)) offer(links);
        const int rail_mate = node * per_node + local;
        if (!same_node && local != target && node_->joins(local, target) &&
            network_->on_one_switch(src, rail_mate)) {
            links.clear();
            network_->append_route(src, rail_mate, links);
            node_->append_route(node, local, target, links);
            offer(links);
        }
    }
    if (!found)
        throw UserError("topology " + name_ + ": no route from gpu" + std::to_string(src) + " to gpu" +
                        std::to_string(dst) + " (add a group to /fabric that joins them)");
    for (auto link = route.links.rbegin(); link != route.links.rend(); ++link)
        route.latency += (*links_)[*link].latency;
    return route;
}

Json topology_schema() {
    Json schema = named_file_schema("Topology", "GPUs and the links that join them.");
    Json& keys = schema["properties"];
    keys["device"] = name_schema("File in configs/devices that describes every GPU.", "\\.json");
    add_fields(schema, "", true, size_fields());
    keys["fabric"] = list_schema(
        "Groups of links. full_mesh, ring, torus, switch and links are repeated in every node, with GPU numbers local "
        "to the node; of the rest, the network between nodes, there is at most one. Empty: GPUs are not joined.",
        link_group_schema());
    keys["fabric"].erase("minItems");
    keys["ring"] =
        list_schema("Order of a node's GPUs in ring schedules, every number once. Default: 0, 1, 2, ...",
                    {{"type", "integer"}, {"minimum", 0}});
    keys["ring"]["uniqueItems"] = true;
    keys["degraded"] = degraded_schema();
    schema["required"].insert(schema["required"].end(), {"device", "fabric"});
    schema["definitions"]["sourced"] = value_definitions()["sourced"];
    return schema;
}

MachineFiles read_machine_files(ConfigFile topology, const std::filesystem::path& devices,
                                const std::filesystem::path& calibrations, const WhatIf& what_if,
                                Json (*calibration)()) {
    const std::filesystem::path path = topology.name;
    require_kind(topology.json, topology.name, FileKind::topology);
    topology.schema = topology_schema;
    what_if.change("topology", std::array{&topology});
    ConfigObject config = topology.view();
    std::string device = config.text("device");
    if (!device.ends_with(".json")) device += ".json";
    // Beside the topology, or in the folders beside its own, as in configs/.
    const std::filesystem::path folder = path.parent_path(), tree = folder / "..";
    std::filesystem::path found = folder / device, fits = calibrations;
    if (!std::filesystem::exists(found)) found = tree / "devices" / device;
    if (!std::filesystem::exists(found)) found = devices / device;
    if (!fits.empty() && found.parent_path() == tree / "devices" &&
        std::filesystem::exists(tree / "calibrations" / device))
        fits = tree / "calibrations";
    if (!std::filesystem::exists(found)) {
        std::vector<std::string> known;
        for (const auto& entry : std::filesystem::directory_iterator(devices))
            known.push_back(entry.path().filename().string());
        std::ranges::sort(known);
        config.fail("device", "is " + in_quotes(device) + ", no such file beside it or in " +
                                  devices.string() + suggestion(device, known));
    }
    MachineFiles files{std::move(topology), read_config_file(found, "device"), {}, {}, {}};
    files.device.schema = device_schema;
    std::vector<ConfigFile*> of_device{&files.device};
    if (!fits.empty()) {
        of_device.push_back(&files.calibration.emplace(calibration_of(files.device, devices, fits)));
        files.calibration->schema = calibration;
    }
    std::optional<ConfigFile> fitted = files.calibration;
    files.moved = change_device(what_if, of_device);
    if (fitted && files.calibration->name != fitted->name) files.fitted = std::move(fitted);
    return files;
}

Topology read_topology(const MachineFiles& files) {
    return {files.topology.view(),
            read_device(files.device, files.calibration ? &*files.calibration : nullptr)};
}

}  // namespace overlap
