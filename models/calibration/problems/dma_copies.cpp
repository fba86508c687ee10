#include "models/calibration/problems/problems.hpp"

#include <algorithm>

#include "models/calibration/problems/peer_copies.hpp"

namespace overlap {
namespace {

constexpr double strided_weight = 0.5;      // a third of the rows, all of the same kind
constexpr double open_order_weight = 0.25;  // medians differ by up to 75 % between runs
const std::string at_least_1_mib = "DMA copy >= 1 MiB", below_1_mib = "DMA copy < 1 MiB",
                  in_no_fit = "DMA copies in no fit";
const std::vector<std::string> parts{"  one copy >= 16 MiB", "  one copy 1-4 MiB", "  chained chunks",
                                     "  strided"};

std::string direction_of(const PeerCopies& copies) {
    return copies.direction == Direction::pull ? "pull" : "push";
}

double weight_of(const PeerCopies& copies) {
    if (copies.unseen) return 0;
    if (copies.row.si() > 0) return strided_weight;
    const bool open = copies.direction == Direction::push && copies.pattern == "all_at_once";
    return open ? open_order_weight : 1.0;
}

/// Classes by size, kind and pattern.
std::vector<std::string> dma_classes(const PeerCopies& copies) {
    if (copies.unseen) return {in_no_fit};
    const bool large = copies.size.si() >= mebibyte, chained = copies.chunks > 1,
               strided = copies.row.si() > 0;
    std::vector<std::string> classes{large ? at_least_1_mib : below_1_mib};
    if (strided)
        classes.push_back(parts[3]);
    else if (chained)
        classes.push_back(parts[2]);
    else if (large)
        classes.push_back(parts[copies.size.si() >= 16 * mebibyte ? 0 : 1]);
    if (large) classes.push_back("  " + direction_of(copies) + " " + copies.pattern);
    return classes;
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

}  // namespace

DeviceProblem dma_copies(const std::filesystem::path& folder, const std::string& shown,
                         const HeldOut& held_out) {
    DeviceProblem problem{.name = "DMA copies",
                          .parameters = dma_parameters(),
                          .rows = {},
                          .classes = {at_least_1_mib, below_1_mib},
                          .families = "direction and pattern",
                          .file = shown + "/two_gpus.jsonl, four_gpus.jsonl, at_once.jsonl",
                          .date = {}};
    problem.classes.insert(problem.classes.end(), parts.begin(), parts.end());
    for (const PeerCopies& copies : measured_peer_copies(
             folder, {"two_gpus.jsonl", "four_gpus.jsonl", "at_once.jsonl"}, held_out, problem.date)) {
        if (copies.agent != Agent::dma || copies.call != "peer" || copies.beside_gemms) continue;
        const std::vector<std::string> classes = dma_classes(copies);
        for (const std::string& one : classes)
            if (std::find(problem.classes.begin(), problem.classes.end(), one) == problem.classes.end())
                problem.classes.push_back(one);
        const TaskGraph graph = copy_graph(copies);
        problem.rows.push_back({.name = copies.name(),
                                .family = direction_of(copies) + " " + copies.pattern,
                                .classes = classes,
                                .measured = copies.median_us,
                                .weight = weight_of(copies),
                                .predict = [graph, copies](const Machines& m) {
                                    return predicted_us(copies, graph, machine_of(m, copies.gpus));
                                }});
    }
    return problem;
}

}  // namespace overlap
