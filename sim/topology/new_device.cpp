#include "sim/topology/new_device.hpp"

#include <algorithm>

#include "sim/core/file_version.hpp"
#include "sim/core/operators.hpp"
#include "sim/topology/device.hpp"
#include "sim/topology/like_device.hpp"

namespace overlap {
namespace {

Json sourced(double value, const std::string& source) {
    return {{"value", value}, {"source", source}};
}

/// Every value of `node` as that of the new device.
void estimate(Json& node, const std::string& key, const DataSheet& sheet, const Factors& factors,
              const std::string& like) {
    if (!node.is_object()) return;
    node.erase("provenance");
    if (!node.contains("value")) {
        for (const auto& item : node.items())
            estimate(item.value(), key.empty() ? item.key() : key + "." + item.key(), sheet, factors, like);
        return;
    }
    const Json old = node["value"];
    const double factor = old.is_number() ? moved_factor(key, factors) : 1;
    node = {{"value", old}, {"source", "estimate: " + value_of(like, factor)}};
    if (const auto given = sheet.values.find(key); given != sheet.values.end())
        node = sourced(given->second, sheet.sources.at(key));
    else if (factor != 1)
        node["value"] = six_digits(scaled(key, old.get<double>(), factor));
}

/// The times of a library's collectives, estimated from those of `like` by the lines in `library` and `old`.
void estimate_times(Json& library, const Json& old, const std::string& like) {
    const auto estimate = [&](Json& timed, const std::string& collective) {
        if (!timed.contains("by_ranks") || !old.contains(collective)) return;
        scale_times(timed["by_ranks"], collective, old.at(collective), library.at(collective));
        for (auto& table : timed["by_ranks"]) {
            table["source"] =
                "estimate: times of " + like + ", scaled as " + collective + "'s latency and bus rate";
            for (auto& us : table["us"]) us = six_digits(us.get<double>());
        }
    };
    for (const std::string& collective : collective_names)
        if (library.contains(collective)) estimate(library[collective], collective);
    if (library.contains("all_reduce_kernels"))
        for (auto& kernel : library["all_reduce_kernels"]) estimate(kernel, "all_reduce");
}

/// Without the times by number of GPUs, which hold for links of the type that they were measured on.
void erase_times(Json& library) {
    for (const std::string& collective : collective_names)
        if (library.contains(collective)) library[collective].erase("by_ranks");
    library.erase("all_reduce_kernels");
}

double number(const Json& group, const char* key) {
    return group.at(key).at("value").get<double>();
}

bool is_switch(const Json& group) {
    return group.at("type") == "switch";
}

/// The group of links of a topology that new machines can have; null if it has none.
const Json* links_of(const Json& topology) {
    if (topology.is_null()) return nullptr;
    for (const Json& group : topology.at("fabric"))
        if (is_switch(group) || group.at("type") == "full_mesh") return &group;
    return nullptr;
}

/// Rate of all links of a GPU.
double ports(const Json& group, int gpus) {
    const double link = number(group, "bandwidth_GBps");
    const std::string type = group.at("type");
    if (type == "links")
        return link * static_cast<double>(std::count_if(group.at("pairs").begin(), group.at("pairs").end(),
                                                        [](const Json& pair) { return pair[0] == 0; }));
    return link * (type == "switch" ? 1 : type == "ring" ? 2 : gpus - 1);
}

/// Bandwidth of the links of one GPU to each peer, or to the switch.
double usable(const DataSheet& sheet) {
    const int peers = std::max(sheet.gpus - 1, 1), ends = sheet.by_switch ? 1 : peers;
    const int links = sheet.links > 0 ? sheet.links : ends;
    if (links % ends != 0)
        throw UserError("command line: --links is " + std::to_string(links) +
                        ", expected a multiple of the " + std::to_string(peers) +
                        " peers of a GPU, or --switch");
    return *sheet.link_GBps * (links / ends);
}

/// The topology; `factors` gets those of its links.
Json topology_of(const DataSheet& sheet, const LikeMachine& like, Factors& factors) {
    const Json* known = links_of(like.topology);
    const std::string from = known == nullptr ? like.name : like.topology.at("name").get<std::string>();
    const bool measured = !sheet.fabric.is_null();
    if (!measured && !sheet.link_GBps && known == nullptr)
        throw UserError("command line: --link-GBps is missing: no topology of " + like.name +
                        " has a switch or a full mesh");
    if (!sheet.latency_us && known == nullptr)
        throw UserError("command line: --link-latency-us is missing: no topology of " + like.name +
                        " has a switch or a full mesh");
    Json group = sheet.fabric;
    if (!measured) {
        const bool by_switch = sheet.link_GBps ? sheet.by_switch : is_switch(*known);
        group = {{"type", by_switch ? "switch" : "full_mesh"}};
        if (by_switch) group["name"] = "switch";
        group["bandwidth_GBps"] =
            sheet.link_GBps ? sourced(usable(sheet), sheet.sources.at("link"))
                            : sourced(number(*known, "bandwidth_GBps"), "estimate: " + value_of(from, 1));
    }
    group["latency_us"] = sheet.latency_us
                              ? sourced(*sheet.latency_us, "data sheet, given as --link-latency-us")
                              : sourced(number(*known, "latency_us"), "estimate: " + value_of(from, 1));
    if (known != nullptr && sheet.gpus > 1) {
        const double link = number(group, "bandwidth_GBps"), old = number(*known, "bandwidth_GBps");
        const int gpus = like.topology.at("gpus_per_node").get<int>();
        factors["link_GBps"] = link / old;
        factors["ports_GBps"] = ports(group, sheet.gpus) / ports(*known, gpus);
    }
    const std::string name = sheet.name + "_" + std::to_string(sheet.gpus);
    return {{"schema", 1},
            {"name", name},
            {"description", std::to_string(sheet.gpus) + "x " + sheet.name + ", " + sheet.known_from + "."},
            {"device", sheet.name + ".json"},
            {"nodes", 1},
            {"gpus_per_node", sheet.gpus},
            {"fabric", sheet.gpus > 1 ? Json::array({group}) : Json::array()}};
}

}  // namespace

void add_missing(Json& to, const Json& from) {
    for (const auto& [key, value] : from.items()) {
        if (key == "provenance") continue;
        if (!to.contains(key))
            to[key] = value;
        else if (to[key].is_object() && !to[key].contains("value"))
            add_missing(to[key], value);
    }
}

NewMachine new_machine(const DataSheet& sheet, const LikeMachine& like) {
    Json device = like.device;
    for (const std::string& group : calibrated_groups)
        if (like.calibration.contains(group)) add_missing(device[group], like.calibration[group]);
    device.erase("energy");

    Factors factors;
    std::string first_type;
    for_each_number(device, [&](const std::string& key, const Json& parameter) {
        const auto given = sheet.values.find(key);
        if (given == sheet.values.end()) return;
        factors[key] = given->second / parameter["value"].get<double>();
        if (first_type.empty() && key.starts_with("peak_TFLOPS.")) first_type = key;
    });
    // Types whose rate is not given change by the factor of one that is.
    if (!first_type.empty())
        for (const auto& type : device["peak_TFLOPS"].items())
            factors.emplace("peak_TFLOPS." + type.key(), factors[first_type]);
    NewMachine made;
    made.topology = topology_of(sheet, like, factors);
    const Json library = device.value("collective_library", Json());
    estimate(device, "", sheet, factors, like.name);
    if (!library.is_null()) {
        const Json *links = links_of(made.topology), *known = links_of(like.topology);
        if (links != nullptr && known != nullptr && links->at("type") == known->at("type"))
            estimate_times(device["collective_library"], library, like.name);
        else
            erase_times(device["collective_library"]);
    }
    for (const auto& [key, value] : sheet.values)  // types that the other device has not
        if (const std::string_view type = std::string_view(key).substr(key.find('.') + 1);
            key.starts_with("peak_TFLOPS.") && !device["peak_TFLOPS"].contains(type))
            device["peak_TFLOPS"][std::string(type)] = sourced(value, sheet.sources.at(key));

    made.device = {{"schema", newest_version("device")},
                   {"name", sheet.name},
                   {"description",
                    sheet.name + ", " + sheet.known_from + "; all else is estimated from " + like.name + "."},
                   {"like", like.name}};
    if (device.contains("collective_library"))
        device["collective_library"]["name"] =
            device["collective_library"]["name"].get<std::string>() + " (estimate: as of " + like.name + ")";
    for (const auto& [key, value] : device.items())
        if (!made.device.contains(key)) made.device[key] = value;
    return made;
}

}  // namespace overlap
