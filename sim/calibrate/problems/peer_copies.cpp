#include <algorithm>
#include <array>
#include <map>
#include <sstream>

#include "sim/calibrate/measurements/measurement_file.hpp"
#include "sim/calibrate/problems/problems.hpp"
#include "sim/core/median.hpp"
#include "sim/core/ranges.hpp"
#include "sim/engine/engine.hpp"
#include "sim/pricing/effects.hpp"

namespace overlap {
namespace {

namespace fs = std::filesystem;

const std::array<std::string, 7> patterns{"pair",         "both_ways",   "ring",    "one_with_all",
                                          "all_with_one", "all_at_once", "rotation"};
const std::array<std::string, 3> enqueue_names{"lanes", "steps", "threads"};
constexpr int seeds = 31, seeds_of_few = 4;

/// A `peer_copy` case (models/calibration/hip/cases/as_plans.py).
struct PeerCopies {
    Agent agent = Agent::dma;
    Direction direction = Direction::pull;
    std::string pattern;
    int gpus = 2;
    int blocks = 0;
    int chunks = 1;
    Bytes size, row;        ///< row 0: contiguous
    bool by_turns = false;  ///< the host enqueued one copy for each lane in turn; else lane after lane
    bool marked = false;    ///< an event after every copy
    bool unseen = false;    ///< no fit may see the case
    std::vector<double> samples_us;

    bool is_large() const { return size.si() >= mebibyte; }
    std::string way() const { return direction_names[static_cast<std::size_t>(direction)] + " " + pattern; }
    /// "pull all_at_once 4 GPUs 4 x 1 MiB"
    std::string name() const {
        std::string text = way() + " " + std::to_string(gpus) + " GPUs ";
        if (blocks > 0) text += std::to_string(blocks) + " blocks ";
        if (chunks > 1) text += std::to_string(chunks) + " x ";
        text += size_name(size);
        if (row.si() > 0) text += " in rows of " + size_name(row);
        return text;
    }
};

/// Adds the cases of copies by `agent` alone to `result`. Passes of a case are merged. Cases enqueued by several threads
/// are left out because their order is unknown.
void add_cases(const MeasurementFile& file, Agent agent, const HeldOut& held_out,
               std::vector<PeerCopies>& result) {
    std::map<std::string, std::size_t> seen;
    for (const Measurement& measurement : file.measurements) {
        if (measurement.kind != "peer_copy") continue;
        ConfigObject line = file.view(measurement);
        const auto count = [&](const char* key, int least) {
            return static_cast<int>(line.integer(key, least, most_in_a_case));
        };
        PeerCopies copies;
        const std::string& enqueue = enqueue_names.at(line.choice("enqueue", enqueue_names));
        copies.agent = static_cast<Agent>(line.choice("agent", agent_names));
        copies.direction = static_cast<Direction>(line.choice("transfer", direction_names));
        copies.pattern = patterns.at(line.choice("pattern", patterns));
        copies.gpus = count("gpus", 2);
        copies.blocks = count("blocks", 0);
        copies.chunks = count("chunks", 1);
        copies.size = Bytes(line.number("size", positive));
        copies.row = Bytes(line.number("row", non_negative));
        copies.by_turns = enqueue == "steps";
        copies.marked = line.text("detail") == "1";
        copies.unseen = held_out && held_out(measurement.fields);
        const std::string call = line.text("call");
        const bool counts = copies.agent == agent && (agent == Agent::cu || call == "peer");
        if (!counts || enqueue == "threads" || count("gemms", 0) > 0) continue;
        const std::string key = copies.name() + " " + line.text("to") + enqueue + call + line.text("detail") +
                                std::to_string(count("n_samples", 1));
        const auto [place, is_new] = seen.emplace(key, result.size());
        if (is_new) result.push_back(copies);
        append(result[place->second].samples_us, line.numbers("samples", positive));
    }
}

/// The streams of copies, each a rank and the peers that it serves in order.
std::vector<std::pair<int, std::vector<int>>> lanes_of(const std::string& pattern, int gpus) {
    std::vector<std::pair<int, std::vector<int>>> lanes;
    const int ranks = pattern == "pair" || pattern == "one_with_all" ? 1 : gpus;
    for (int own = 0; own < ranks; ++own) {
        std::vector<int> peers;
        for (int step = 1; step < gpus; ++step) peers.push_back((own + step) % gpus);
        if (pattern == "pair" || pattern == "both_ways" || pattern == "ring") peers.resize(1);
        if (pattern == "rotation") {
            lanes.emplace_back(own, peers);
            continue;
        }
        for (const int peer : peers)
            if (pattern != "all_with_one" || peer == 0) lanes.emplace_back(own, std::vector{peer});
    }
    return lanes;
}

/// The copies in the order in which the host enqueued them; each lane has its own stream.
TaskGraph copy_graph(const PeerCopies& copies) {
    const auto lanes = lanes_of(copies.pattern, copies.gpus);
    const bool pull = copies.direction == Direction::pull;
    TaskGraph graph;
    const auto add = [&](std::size_t lane, std::size_t operation) {
        const auto& [own, peers] = lanes[lane];
        const int peer = peers[operation / static_cast<std::size_t>(copies.chunks)];
        const Bytes run = copies.row.si() > 0 ? copies.row : copies.size;
        CopyWork work{pull ? peer : own, pull ? own : peer, copies.size,  run,
                      copies.agent,      copies.direction,  copies.blocks};
        work.all_pairs = copies.pattern == "all_at_once" && copies.gpus > 2;
        graph.add({work, own, 100 + static_cast<int>(lane)}, {});
    };
    const std::size_t operations = lanes.front().second.size() * static_cast<std::size_t>(copies.chunks),
                      all = operations * lanes.size();
    for (std::size_t i = 0; i < all; ++i)
        copies.by_turns ? add(i % lanes.size(), i / lanes.size()) : add(i / operations, i % operations);
    return graph;
}

/// Makespan in µs of the copies in `graph` when nothing else runs; the median over seeds if the
/// machine leaves the order open, as it does for DMA.
double predicted_us(const PeerCopies& copies, const TaskGraph& graph, const Machine& machine) {
    static const CostModels models;
    Costs costs = price(graph, Workload(), machine, models, Effects());
    for (Cost& cost : costs.classes) cost.awaited = copies.marked;
    const std::unique_ptr<Engine> engine = make_engine("flow");
    const std::uint64_t few = copies.agent == Agent::dma ? seeds_of_few : 1;
    std::vector<double> makespans;
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
        makespans.push_back(to_microseconds(engine->run(graph, costs, machine.resources, seed).makespan));
        const auto [least, most] = std::ranges::minmax(makespans);
        if (seed + 1 == few && least == most) break;  // the order is fixed, one seed is enough
    }
    return median(makespans);
}

std::vector<DeviceParameter> dma_parameters() {
    const Range time_us{1e-3, 1e6}, rate_GBps{1e-3, 1e7}, bytes{1e-3, 1e9};
    std::vector<DeviceParameter> all{
        {"dma", "engine_GBps", 397.5, 1.1, rate_GBps, "estimate: the rate of 1 GiB pushes"},
        {"dma", "schedule_us", 4, 2, time_us, "estimate: a push of 4 KiB takes 10 us"},
        {"dma", "start_us", 1.5, 2, time_us, "estimate: chained pushes of 64 KiB take 2.4 us each"},
        {"dma", "pull_schedule_us", 9, 1.3, time_us, "estimate: chained pulls take 12 us each"},
        {"dma", "switch_us", 4, 1.5, time_us, "estimate: pushes on three streams take 6.4 us each"},
        {"dma", "poll_us", 9.21, 1.03, time_us, "estimate: ends of pulls of all sizes lie 9.2 us apart"},
        {"dma", "first_poll_us", 11.1, 1.05, time_us, "estimate: small pulls end at 11 or 20 us"},
        {"dma", "strided_run_bytes", 16, 4, bytes, "estimate: rows of 1 KiB cost 1.4 % at most"}};
    // How one vendor's driver serves pulls and changes streams.
    for (DeviceParameter& one : all)
        one.optional =
            one.key == "pull_schedule_us" || one.key == "switch_us" || one.key.ends_with("poll_us");
    return all;
}

std::vector<DeviceParameter> kernel_parameters() {
    const Range time_us{1e-3, 1e6}, rate_GBps{1e-3, 1e7}, share{1e-4, 1};
    const std::string group = "copy_kernel";
    return {{group, "launch_us", 1.5, 1.3, time_us,
             "estimate: kernels of one stream follow each other in 1.5 us"},
            {group, "queued_launch_us", 4.4, 1.5, time_us,
             "estimate: small copies on three streams take 14.7 us, on one 5.9: (14.7 - 5.9) / 2"},
            {group, "completion_us", 3, 1.3, time_us, "estimate: an event costs 3.0 us"},
            {group, "completions_apart_us", 3, 1.3, time_us,
             "estimate: ends of three copies of a GPU are seen 3 us apart, however close they are"},
            {group, "link_GBps_per_cu", 46.5, 1.1, rate_GBps, "estimate: 64 MiB by 1 block take 1415 us"},
            {group, "saturation", 7, 2, {0.5, 100}, "estimate: 8 blocks, at x = 1, reach 94 %"},
            {group, "link_overhead", 0.06, 2, share, "estimate: three pulls into one GPU reach 375.5 GB/s"},
            {group, "crossing_loss", 0.12, 2, share,
             "estimate: 64 MiB from all to all by 8 and 16 blocks take 610 to 685 us, 579 by 32"}};
}

/// By size, kind and pattern.
std::vector<std::string> dma_classes(const PeerCopies& copies) {
    std::vector<std::string> classes{copies.is_large() ? "DMA copy >= 1 MiB" : "DMA copy < 1 MiB"};
    if (copies.row.si() > 0)
        classes.push_back("  strided");
    else if (copies.chunks > 1)
        classes.push_back("  chained chunks");
    else if (copies.is_large())
        classes.push_back(copies.size.si() >= 16 * mebibyte ? "  one copy >= 16 MiB" : "  one copy 1-4 MiB");
    if (copies.is_large()) classes.push_back("  " + copies.way());
    return classes;
}

std::vector<std::string> kernel_classes(const PeerCopies& copies) {
    const std::string pattern = "  " + copies.pattern + (copies.is_large() ? ", large" : ", small");
    return {copies.is_large() ? "kernel copy >= 1 MiB" : "kernel copy < 1 MiB",
            copies.row.si() > 0 ? "  strided"
            : copies.chunks > 1 ? "  chained chunks"
                                : pattern};
}

double dma_weight(const PeerCopies& copies) {
    constexpr double strided = 0.5;      // a third of the rows, all of the same kind
    constexpr double open_order = 0.25;  // medians differ by up to 75 % between runs
    if (copies.row.si() > 0) return strided;
    return copies.direction == Direction::push && copies.pattern == "all_at_once" ? open_order : 1;
}

/// Adds the cases of `names` that `folder` has, as a machine of two GPUs has no four_gpus.jsonl.
void add_rows(const fs::path& folder, const std::vector<std::string>& names, Agent agent,
              const HeldOut& held_out, std::vector<std::string> (*classes_of)(const PeerCopies&),
              DeviceProblem& problem) {
    std::vector<PeerCopies> cases;
    for (const std::string& name : names) {
        if (!fs::exists(folder / name)) continue;
        const MeasurementFile file = read_measurements(folder / name);
        problem.date = file.date();
        add_cases(file, agent, held_out, cases);
    }
    for (const PeerCopies& copies : cases) {
        const bool kernels = agent == Agent::cu;
        problem.rows.push_back({.name = copies.name(),
                                .family = copies.way() + (kernels ? " " + std::to_string(copies.gpus) : ""),
                                .classes = copies.unseen
                                               ? std::vector{std::string(kernels ? "kernel copies in no fit"
                                                                                 : "DMA copies in no fit")}
                                               : classes_of(copies),
                                .measured = median(copies.samples_us),
                                .weight = copies.unseen ? 0
                                          : kernels     ? 1
                                                        : dma_weight(copies),
                                .predict = [graph = copy_graph(copies), copies](const Machines& m) {
                                    return predicted_us(copies, graph, machine_of(m, copies.gpus));
                                }});
    }
}

}  // namespace

std::string size_name(Bytes size) {
    std::ostringstream out;
    const double kibi = 1024, bytes = size.si();
    if (bytes >= kibi * mebibyte)
        out << bytes / (kibi * mebibyte) << " GiB";
    else if (bytes >= mebibyte)
        out << bytes / mebibyte << " MiB";
    else
        out << bytes / kibi << " KiB";
    return out.str();
}

DeviceProblem dma_copies(const fs::path& folder, const std::string& shown, const HeldOut& held_out) {
    DeviceProblem problem{.name = "DMA copies",
                          .parameters = dma_parameters(),
                          .classes = {"DMA copy >= 1 MiB", "DMA copy < 1 MiB", "  one copy >= 16 MiB",
                                      "  one copy 1-4 MiB", "  chained chunks", "  strided"},
                          .families = "direction and pattern",
                          .file = shown + "/two_gpus.jsonl, four_gpus.jsonl, at_once.jsonl"};
    add_rows(folder, {"two_gpus.jsonl", "four_gpus.jsonl", "at_once.jsonl"}, Agent::dma, held_out,
             dma_classes, problem);
    // A class of each direction and pattern that was measured.
    for (const DeviceRow& row : problem.rows)
        for (const std::string& one : row.classes)
            if (!contains(problem.classes, one)) problem.classes.push_back(one);
    return problem;
}

DeviceProblem kernel_copies(const fs::path& folder, const std::string& shown, const HeldOut& held_out) {
    DeviceProblem problem{.name = "kernel copies",
                          .parameters = kernel_parameters(),
                          .families = "pattern, direction, GPUs",
                          .file = shown + "/two_gpus.jsonl, four_gpus.jsonl"};
    for (const std::string size : {"large", "small"}) {
        problem.classes.push_back(size == "large" ? "kernel copy >= 1 MiB" : "kernel copy < 1 MiB");
        for (const std::string& pattern : patterns) problem.classes.push_back("  " + pattern + ", " + size);
    }
    append(problem.classes,
           std::vector<std::string>{"  chained chunks", "  strided", "kernel copies in no fit"});
    add_rows(folder, {"two_gpus.jsonl", "four_gpus.jsonl"}, Agent::cu, held_out, kernel_classes, problem);
    return problem;
}

}  // namespace overlap
