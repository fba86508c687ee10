#include "models/calibration/problems/peer_copies.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <sstream>

#include "sim/core/median.hpp"
#include "sim/engine/engine.hpp"
#include "sim/run/effects.hpp"

namespace overlap {
namespace {

const std::array<std::string, 7> patterns{"pair", "both_ways",   "one_with_all", "all_with_one",
                                          "ring", "all_at_once", "rotation"};
const std::array<std::string, 3> enqueue_names{"lanes", "steps", "threads"};
constexpr int seeds = 31, seeds_of_few = 4;

/// Peers of `own`: one stream for each peer, or one stream in order.
struct PeerLane {
    int own;
    std::vector<int> peers;
};

std::vector<PeerLane> lanes_of(const std::string& pattern, int gpus) {
    std::vector<PeerLane> lanes;
    for (int own = 0; own < gpus; ++own) {
        const auto peer = [&](int step) { return (own + step) % gpus; };
        if ((pattern == "pair" || pattern == "one_with_all") && own > 0) break;
        if (pattern == "pair" || pattern == "both_ways" || pattern == "ring") {
            lanes.push_back({own, {peer(1)}});
        } else if (pattern == "rotation") {
            lanes.push_back({own, {}});
            for (int step = 1; step < gpus; ++step) lanes.back().peers.push_back(peer(step));
        } else {
            for (int step = 1; step < gpus; ++step)
                if (pattern != "all_with_one" || peer(step) == 0) lanes.push_back({own, {peer(step)}});
        }
    }
    return lanes;
}

std::vector<PeerCopies> cases_of(const MeasurementFile& file, const HeldOut& held_out) {
    std::vector<PeerCopies> result;
    std::map<std::string, std::size_t> seen;
    std::vector<std::vector<double>> samples;
    for (const Measurement& measurement : file.measurements) {
        if (measurement.kind != "peer_copy") continue;
        ConfigObject line = file.view(measurement);
        PeerCopies copies;
        const std::string& enqueue = enqueue_names.at(line.choice("enqueue", enqueue_names));
        if (enqueue == "threads") continue;
        copies.agent = static_cast<Agent>(line.choice("agent", agent_names));
        copies.direction = static_cast<Direction>(line.choice("transfer", direction_names));
        copies.pattern = patterns.at(line.choice("pattern", patterns));
        copies.gpus = static_cast<int>(line.integer("gpus", 2, most_in_a_case));
        copies.blocks = static_cast<int>(line.integer("blocks", 0, most_in_a_case));
        copies.chunks = static_cast<int>(line.integer("chunks", 1, most_in_a_case));
        copies.size = Bytes(line.number("size", positive));
        copies.row = Bytes(line.number("row", non_negative));
        copies.strided_to = line.text("to") == "strided";
        copies.by_turns = enqueue == "steps";
        copies.call = line.text("call");
        copies.beside_gemms = line.integer("gemms", 0, most_in_a_case) > 0;
        copies.marked = line.text("detail") == "1";
        copies.unseen = held_out && held_out(measurement.fields);
        const std::string key = copies.name() + (copies.strided_to ? " strided " : " ") + enqueue +
                                copies.call + (copies.beside_gemms ? " gemms" : "") +
                                (copies.marked ? " marked" : "") + (copies.agent == Agent::dma ? "" : " cu") +
                                std::to_string(line.integer("n_samples", 1, most_in_a_case));
        const auto [place, is_new] = seen.emplace(key, result.size());
        if (is_new) {
            result.push_back(copies);
            samples.emplace_back();
        }
        for (const double us : line.numbers("samples", positive)) samples[place->second].push_back(us);
    }
    for (std::size_t i = 0; i < result.size(); ++i) result[i].median_us = median(samples[i]);
    return result;
}

}  // namespace

std::string size_name(Bytes size) {
    std::ostringstream out;
    const double kibi = 1024, bytes = size.si();
    if (bytes >= kibi * kibi * kibi)
        out << bytes / (kibi * kibi * kibi) << " GiB";
    else if (bytes >= kibi * kibi)
        out << bytes / (kibi * kibi) << " MiB";
    else
        out << bytes / kibi << " KiB";
    return out.str();
}

std::string PeerCopies::name() const {
    std::string text = direction_names[static_cast<std::size_t>(direction)] + " " + pattern + " " +
                       std::to_string(gpus) + " GPUs ";
    if (blocks > 0) text += std::to_string(blocks) + " blocks ";
    if (chunks > 1) text += std::to_string(chunks) + " x ";
    text += size_name(size);
    if (row.si() > 0) text += " in rows of " + size_name(row);
    return text;
}

std::vector<PeerCopies> measured_peer_copies(const std::filesystem::path& folder,
                                             const std::vector<std::string>& names, const HeldOut& held_out,
                                             std::string& date) {
    std::vector<PeerCopies> result;
    for (const std::string& name : names) {
        if (!std::filesystem::exists(folder / name)) continue;
        const MeasurementFile file = read_measurements(folder / name);
        date = file.date();
        for (PeerCopies& copies : cases_of(file, held_out)) result.push_back(std::move(copies));
    }
    return result;
}

TaskGraph copy_graph(const PeerCopies& copies) {
    const std::vector<PeerLane> lanes = lanes_of(copies.pattern, copies.gpus);
    const bool pull = copies.direction == Direction::pull;
    TaskGraph graph;
    const auto add = [&](std::size_t lane, std::size_t operation) {
        const int own = lanes[lane].own;
        const int peer = lanes[lane].peers[operation / static_cast<std::size_t>(copies.chunks)];
        const Bytes run = copies.row.si() > 0 ? copies.row : copies.size;
        CopyWork work{pull ? peer : own, pull ? own : peer, copies.size,  run,
                      copies.agent,      copies.direction,  copies.blocks};
        work.all_pairs = copies.pattern == "all_at_once" && copies.gpus > 2;
        graph.add({work, own, 100 + static_cast<int>(lane)}, {});
    };
    const std::size_t operations = lanes.front().peers.size() * static_cast<std::size_t>(copies.chunks);
    if (copies.by_turns) {
        for (std::size_t i = 0; i < operations; ++i)
            for (std::size_t lane = 0; lane < lanes.size(); ++lane) add(lane, i);
    } else {
        for (std::size_t lane = 0; lane < lanes.size(); ++lane)
            for (std::size_t i = 0; i < operations; ++i) add(lane, i);
    }
    return graph;
}

double predicted_us(const PeerCopies& copies, const TaskGraph& graph, const Machine& machine) {
    static const CostModels models;
    Costs costs = price(graph, Workload(), machine, models, Effects());
    for (Cost& cost : costs.classes) cost.awaited = copies.marked;
    const std::unique_ptr<Engine> engine = make_engine("flow");
    const std::uint64_t few = copies.agent == Agent::dma ? seeds_of_few : 1;
    std::vector<double> makespans;
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
        makespans.push_back(to_microseconds(engine->run(graph, costs, machine.resources, seed).makespan));
        if (seed + 1 == few && *std::max_element(makespans.begin(), makespans.end()) ==
                                   *std::min_element(makespans.begin(), makespans.end()))
            break;  // the order is fixed, one seed is enough
    }
    return median(makespans);
}

}  // namespace overlap
