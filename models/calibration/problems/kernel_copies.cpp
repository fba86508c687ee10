#include "models/calibration/problems/problems.hpp"

#include "models/calibration/problems/peer_copies.hpp"

namespace overlap {
namespace {

const std::string large = "kernel copy >= 1 MiB", small = "kernel copy < 1 MiB", chained = "  chained chunks",
                  strided = "  strided", kernels_in_no_fit = "kernel copies in no fit";

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

std::vector<std::string> kernel_classes(const PeerCopies& copies) {
    if (copies.unseen) return {kernels_in_no_fit};
    const bool is_large = copies.size.si() >= mebibyte;
    std::vector<std::string> classes{is_large ? large : small};
    if (copies.row.si() > 0)
        classes.push_back(strided);
    else if (copies.chunks > 1)
        classes.push_back(chained);
    else
        classes.push_back("  " + copies.pattern + (is_large ? ", large" : ", small"));
    return classes;
}

}  // namespace

DeviceProblem kernel_copies(const std::filesystem::path& folder, const std::string& shown,
                            const HeldOut& held_out) {
    DeviceProblem problem{.name = "kernel copies",
                          .parameters = kernel_parameters(),
                          .rows = {},
                          .classes = {large},
                          .families = "pattern, direction, GPUs",
                          .file = shown + "/two_gpus.jsonl, four_gpus.jsonl",
                          .date = {}};
    const std::vector<std::string> patterns{"pair",         "both_ways",   "ring",    "one_with_all",
                                            "all_with_one", "all_at_once", "rotation"};
    for (const std::string& pattern : patterns) problem.classes.push_back("  " + pattern + ", large");
    problem.classes.push_back(small);
    for (const std::string& pattern : patterns) problem.classes.push_back("  " + pattern + ", small");
    problem.classes.insert(problem.classes.end(), {chained, strided, kernels_in_no_fit});
    for (const PeerCopies& copies :
         measured_peer_copies(folder, {"two_gpus.jsonl", "four_gpus.jsonl"}, held_out, problem.date)) {
        if (copies.agent != Agent::cu || copies.beside_gemms) continue;
        const std::string direction = copies.direction == Direction::pull ? "pull" : "push";
        problem.rows.push_back(
            {.name = copies.name(),
             .family = direction + " " + copies.pattern + " " + std::to_string(copies.gpus),
             .classes = kernel_classes(copies),
             .measured = copies.median_us,
             .weight = copies.unseen ? 0.0 : 1.0,
             .predict = [graph = copy_graph(copies), copies](const Machines& m) {
                 return predicted_us(copies, graph, machine_of(m, copies.gpus));
             }});
    }
    return problem;
}

}  // namespace overlap
