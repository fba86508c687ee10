#include "sim/calibrate/measurements/measured_links.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "sim/calibrate/measurements/measurement_file.hpp"

namespace overlap {
namespace {

constexpr double large_peer_copy = 1 << 26;
constexpr std::int64_t most_of_each = 1'000'000;
using Pairs = std::set<std::pair<int, int>>;

/// Large copies in one piece of one pattern: microseconds by size, for each agent, direction and number of blocks.
using TimesBySize = std::map<double, double>;
using Copies = std::map<std::tuple<std::string, std::string, std::int64_t>, TimesBySize>;

Copies large_copies(const std::filesystem::path& path, const std::string& pattern, int gpus) {
    Copies copies;
    if (!std::filesystem::exists(path)) return copies;
    const MeasurementFile file = read_measurements(path);
    for (const Measurement& measurement : file.measurements) {
        if (measurement.kind != "peer_copy") continue;
        ConfigObject line = file.view(measurement);
        const double size = line.number("size", positive);
        if (line.text("pattern") != pattern || line.integer("gpus", 2, most_of_each) != gpus ||
            size < large_peer_copy || line.integer("chunks", 1, most_of_each) > 1 ||
            line.number("row", non_negative) > 0 || line.integer("gemms", 0, most_of_each) > 0)
            continue;
        double& us = copies[{line.text("agent"), line.text("transfer"),
                             line.integer("blocks", 0, most_of_each)}][size];
        const double median = line.number("median", positive);
        us = us == 0 ? median : std::min(us, median);
    }
    return copies;
}

double GBps(double bytes, double us) {
    return bytes / us * 1e-3;
}

/// GB/s by which time grows with size: launches and latencies do not count.
double link_rate(const Copies& pairs) {
    double best = 0;
    for (const auto& [how, times] : pairs) {
        const auto& [small, before] = *times.begin();
        const auto& [large, after] = *times.rbegin();
        if (large > small && after > before) best = std::max(best, GBps(large - small, after - before));
    }
    return best;
}

/// GB/s that leave a GPU that sends to `peers` others at once.
double fan_out_rate(const Copies& copies, int peers) {
    double best = 0;
    for (const auto& [how, times] : copies)
        for (const auto& [size, us] : times) best = std::max(best, GBps(peers * size, us));
    return best;
}

/// GPUs that are joined to GPU 0, directly or by others.
std::set<int> island(const Pairs& pairs) {
    std::set<int> joined{0};
    for (bool grown = true; grown;) {
        grown = false;
        for (const auto& [a, b] : pairs)
            if (joined.contains(a) != joined.contains(b))
                grown = joined.insert(joined.contains(a) ? b : a).second;
    }
    return joined;
}

Pairs pairs_of(const FastLinks& fast) {
    Pairs pairs;
    for (std::size_t a = 0; a < fast.size(); ++a)
        for (std::size_t b = a + 1; b < fast[a].size(); ++b)
            if (fast[a][b]) pairs.emplace(static_cast<int>(a), static_cast<int>(b));
    return pairs;
}

/// A link between GPU i and GPU i+1, and between the last and the first; three GPUs are a mesh.
bool is_ring(const Pairs& pairs, int gpus) {
    if (gpus < 4 || static_cast<int>(pairs.size()) != gpus) return false;
    for (int gpu = 0; gpu < gpus; ++gpu)
        if (const int next = (gpu + 1) % gpus; !pairs.contains({std::min(gpu, next), std::max(gpu, next)}))
            return false;
    return true;
}

Json list_of(const Pairs& pairs) {
    Json list = Json::array();
    for (const auto& [a, b] : pairs) list.push_back({a, b});
    return list;
}

}  // namespace

std::optional<MeasuredLinks> measured_links(const std::filesystem::path& folder, const std::string& shown,
                                            int gpus, const FastLinks& fast) {
    const Copies pairs = large_copies(folder / "two_gpus.jsonl", "pair", 2);
    const double rate = link_rate(pairs);
    if (gpus < 2 || rate <= 0) return std::nullopt;
    MeasuredLinks links;
    links.gpus = gpus;
    std::string shape = "with two GPUs a switch is a link";
    const Pairs joined = pairs_of(fast);
    const std::set<int> near = island(joined);
    const auto of_island = static_cast<std::size_t>(gpus) * static_cast<std::size_t>(gpus - 1) / 2;
    if (!joined.empty() && joined.size() < of_island) {
        Pairs kept;
        for (const auto& pair : joined)
            if (near.contains(pair.first)) kept.insert(pair);
        links.gpus = static_cast<int>(near.size());
        if (links.gpus < gpus)
            links.notes.push_back(
                "the topology is of the " + std::to_string(links.gpus) +
                " GPUs that NVLink or xGMI joins to GPU 0: no pair of other islands was measured");
        // Later GPUs of the island take the numbers that are left.
        std::map<int, int> number;
        for (const int gpu : near) number.emplace(gpu, static_cast<int>(number.size()));
        Pairs renumbered;
        for (const auto& [a, b] : kept) renumbered.emplace(number[a], number[b]);
        const auto all = static_cast<std::size_t>(links.gpus) * static_cast<std::size_t>(links.gpus - 1) / 2;
        const bool mesh = renumbered.size() == all, ring = is_ring(renumbered, links.gpus);
        links.group["type"] = mesh ? "full_mesh" : ring ? "ring" : "links";
        if (!mesh && !ring) links.group["pairs"] = list_of(renumbered);
        shape = "the driver says which GPUs are joined";
    } else {
        const double all =
            fan_out_rate(large_copies(folder / "four_gpus.jsonl", "one_with_all", gpus), gpus - 1);
        const bool mesh = gpus > 2 && all > rate * std::sqrt(gpus - 1.0);
        links.group["type"] = mesh ? "full_mesh" : "switch";
        if (!mesh) links.group["name"] = "switch";
        if (gpus > 2)
            shape = "one GPU sends to all others at " + std::to_string(std::lround(all)) + " GB/s in all";
    }
    links.group["bandwidth_GBps"] = {
        {"value", std::round(rate * 10) / 10},
        {"source", "measured: " + shown + "/two_gpus.jsonl, one copy, 64 MiB to 1 GiB; " + shape}};
    return links;
}

Json links_among_first(const Json& group, int gpus) {
    const std::string type = group.at("type");
    if (type == "switch" || type == "full_mesh") return group;
    Pairs kept;
    if (type == "ring") {
        for (int gpu = 0; gpu + 1 < gpus; ++gpu) kept.emplace(gpu, gpu + 1);
    } else {
        for (const Json& pair : group.at("pairs"))
            if (pair[0] < gpus && pair[1] < gpus) kept.emplace(pair[0], pair[1]);
    }
    if (static_cast<int>(island(kept).size()) < gpus) return nullptr;
    Json among = group;
    among["type"] = "links";
    among["pairs"] = list_of(kept);
    return among;
}

}  // namespace overlap
