#include "sim/calibration/dma_copies.hpp"

#include "sim/calibration/peer_copies.hpp"

namespace overlap {
namespace {

const std::string large = "DMA copy >= 16 MiB", medium = "DMA copy 1-4 MiB", small = "DMA copy < 1 MiB",
                  chained = "DMA copy, chained chunks", strided = "DMA copy, strided";
constexpr double mebi = 1 << 20;

std::string class_of(const PeerCopies& copies) {
    if (copies.row.si() > 0) return strided;
    if (copies.chunks > 1) return chained;
    return copies.size.si() >= 16 * mebi ? large : copies.size.si() >= mebi ? medium : small;
}

std::vector<DeviceParameter> parameters() {
    const Range time_us{1e-3, 1e6}, rate_GBps{1e-3, 1e7};
    return {{"dma", "engine_GBps", 397.5, 1.1, rate_GBps, "estimate: the rate of 1 GiB pushes"},
            {"dma", "schedule_us", 4, 2, time_us, "estimate: a push of 4 KiB takes 10 us"},
            {"dma", "start_us", 1.3, 2, time_us, "estimate: chained pushes of 64 KiB take 2.4 us each"},
            {"dma", "pull_start_us", 11, 1.5, time_us, "estimate: chained pulls take 12 us each"}};
}

}  // namespace

DeviceProblem dma_copies(const std::filesystem::path& folder, const std::string& shown) {
    DeviceProblem problem{.name = "DMA copies",
                          .parameters = parameters(),
                          .rows = {},
                          .classes = {large, medium, small, chained, strided},
                          .families = "pattern, direction, GPUs",
                          .file = shown + "/two_gpus.jsonl, four_gpus.jsonl",
                          .date = {}};
    for (const std::string name : {"two_gpus.jsonl", "four_gpus.jsonl"}) {
        const MeasurementFile file = read_measurements(folder / name);
        problem.date = file.date();
        for (const PeerCopies& copies : measured_peer_copies(file)) {
            if (copies.agent != Agent::dma || copies.call != "peer" || copies.beside_gemms) continue;
            const std::string direction = copies.direction == Direction::pull ? "pull" : "push";
            const std::string class_name = class_of(copies);
            const TaskGraph graph = copy_graph(copies);
            problem.rows.push_back(
                {.name = copies.name(),
                 .family = direction + " " + copies.pattern + " " + std::to_string(copies.gpus),
                 .classes = {class_name},
                 .measured = copies.median_us,
                 .weight = class_name == strided ? 0.0 : 1.0,
                 .predict = [graph, topology = copies.topology()](const Machines& m) {
                     return predicted_us(graph, m.at(topology));
                 }});
        }
    }
    return problem;
}

}  // namespace overlap
