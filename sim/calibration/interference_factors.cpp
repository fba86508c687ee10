#include "sim/calibration/interference_factors.hpp"

#include <algorithm>
#include <map>

#include "sim/calibration/beside_chains.hpp"

namespace overlap {
namespace {

const std::string work_side = "work beside copies", copy_side = "copies beside work",
                  late = "late copies, wait and copy";
const std::array<std::string, 4> groups{"  DMA", "  kernels of peers", "  own kernels, units left to them",
                                        "  own kernels, GEMM on all units"};
const std::string unseen = "  own kernels, GEMM on all units, seven more shapes";

/// Which of `groups`.
const std::string& group_of(const Beside& beside) {
    if (beside.by_dma()) return groups[0];
    if (!beside.own_kernels()) return groups[1];
    return groups[beside.work_units > 0 ? 2 : 3];
}

/// A mean over passes.
struct Mean {
    double sum = 0;
    int count = 0;
    void add(double value) { sum += value, ++count; }
    double value() const { return sum / count; }
};

struct Case {
    Beside beside;
    bool seen;  ///< its GEMM shape is one that the model was made with
    Mean work, copy;
};

std::vector<DeviceParameter> parameters() {
    const Range share{1e-4, 0.95};
    return {{"interference", "compute_lost_to_dma", 0.13, 1.5, share,
             "estimate: GEMMs of two GPUs that pull from each other take 6.5 % longer, and leave 3 % of "
             "units idle"},
            {"interference", "compute_lost_to_copy_kernels", 0.1, 1.5, share,
             "estimate: GEMMs take 2.5 % longer while a peer's kernels pull, and leave 3 % of units idle"},
            {"interference", "few_waves_lost_to_kernels", 0.52, 1.2, share,
             "estimate: GEMMs of two waves take 1.9 to 2.3 times as long beside pulls from three peers"}};
}

/// Both sides of a case. The fit has GEMMs beside copies of 64 MiB, without those where a copy waits for
/// longer than it takes: there the order of launches decides, not the parameters here.
void add_rows(const Case& one, DeviceProblem& problem) {
    const Beside& beside = one.beside;
    const bool steady = !beside.own_kernels() || (beside.peers > 1 && !beside.local());
    const bool fitted = one.seen && steady && std::holds_alternative<GemmShape>(beside.work) &&
                        beside.size.si() == 64.0 * (1 << 20) && !beside.everywhere &&
                        beside.work_units == 0 && beside.kind != "dma_in_memcpy";
    const auto add = [&](const Mean& measured, const std::string& side, bool of_work) {
        if (measured.count == 0) return;
        const std::string suffix = of_work ? ", work" : ", copies";
        problem.rows.push_back(
            {.name = beside.name() + ", " + side,
             .family = one.seen ? beside.work_name() : "shapes in no fit",
             .classes =
                 one.seen ? std::vector{side, group_of(beside) + suffix} : std::vector{unseen + suffix},
             .measured = measured.value(),
             .weight = fitted && of_work ? 1.0 : 0.0,
             .predict = [beside, of_work](const Machines& machines) {
                 const BesideTimes times = predict_beside(beside, machines.at(beside.topology()));
                 return of_work ? times.work / times.work_alone : times.copy / times.copy_alone;
             }});
    };
    add(one.work, work_side, true);
    add(one.copy, copy_side, false);
}

/// Samples by turns wait `wait_us` and half a GEMM more.
void add_late(ConfigObject line, DeviceProblem& problem) {
    const Beside beside = read_beside(line);
    const Seconds wait = microseconds(line.number("wait_us", positive));
    std::array<std::vector<double>, 2> samples;
    int turn = 0;
    for (const double us : line.numbers("samples", positive))
        samples[static_cast<std::size_t>(turn++ % 2)].push_back(us);
    for (const std::size_t half : {0, 1}) {
        std::vector<double>& sorted = samples[half];
        std::sort(sorted.begin(), sorted.end());
        problem.rows.push_back({.name = beside.name() + (half ? ", late by half a GEMM" : ", late"),
                                .family = beside.work_name(),
                                .classes = {late},
                                .measured = sorted.at(sorted.size() / 2),
                                .weight = 0,
                                .predict = [beside, wait, half](const Machines& machines) {
                                    return predict_late(beside, wait, half ? 0.5 : 0.0,
                                                        machines.at(beside.topology()));
                                }});
    }
}

}  // namespace

DeviceProblem interference_factors(const std::filesystem::path& folder, const std::string& shown) {
    DeviceProblem problem{.name = "interference",
                          .parameters = parameters(),
                          .rows = {},
                          .classes = {},
                          .families = "GEMM shape",
                          .file = shown + "/local.jsonl, two_gpus.jsonl, four_gpus.jsonl",
                          .date = {},
                          .quantity = "factor (late copies: time)",
                          .unit = "1; us"};
    for (const std::string& side : {work_side, copy_side}) {
        problem.classes.push_back(side);
        for (const std::string& group : groups)
            problem.classes.push_back(group + (side == work_side ? ", work" : ", copies"));
        problem.classes.push_back(unseen + (side == work_side ? ", work" : ", copies"));
    }
    problem.classes.push_back(late);
    std::map<std::string, Case> cases;
    for (const std::string name : {"local.jsonl", "two_gpus.jsonl", "four_gpus.jsonl", "more_shapes.jsonl"}) {
        const bool seen = name != "more_shapes.jsonl";  // only judged, and not everybody has it
        if (!seen && !std::filesystem::exists(folder / name)) continue;
        const MeasurementFile file = read_measurements(folder / name);
        if (seen) problem.date = file.date();
        for (const Measurement& measurement : file.measurements) {
            if (measurement.kind == "late_copy" && measurement.pass == 1)
                add_late(file.view(measurement), problem);
            if (measurement.kind != "interference") continue;
            ConfigObject line = file.view(measurement);
            const Beside beside = read_beside(line);
            Case& one = cases.try_emplace(beside.name(), Case{beside, seen, {}, {}}).first->second;
            const auto ratio = [&](const std::string& time, const std::string& alone, Mean& mean) {
                if (!line.raw(time).is_null() && !line.raw(alone).is_null())
                    mean.add(line.number(time, positive) / line.number(alone, positive));
            };
            ratio("median", "alone_us", one.work);
            ratio("copy_us", "copy_alone_us", one.copy);
        }
    }
    for (const auto& [name, one] : cases) add_rows(one, problem);
    return problem;
}

}  // namespace overlap
