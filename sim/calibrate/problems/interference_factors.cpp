#include "sim/calibrate/problems/problems.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "sim/calibrate/problems/beside_chains.hpp"

namespace overlap {
namespace {

const std::string work_side = "work beside copies", copy_side = "copies beside work",
                  late = "late copies, wait and copy";
const std::array<std::string, 4> groups{"  DMA", "  kernels of peers", "  own kernels, units left to them",
                                        "  own kernels, GEMM on all units"};
/// Files of further shapes, which are judged but not fitted.
const std::map<std::string, std::string> judged{{"more_shapes", ", seven more shapes"},
                                                {"unseen", ", six more shapes"},
                                                {"drawn", ", drawn shapes"},
                                                {"redrawn", ", shapes drawn later"}};
/// The judged lists with copies of all groups.
const std::set<std::string> every_kind{"drawn", "redrawn"};

/// The group among `groups` that a case belongs to.
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

struct BesideCase {
    Beside beside;
    std::string judged;  ///< its list, if it is in no fit
    Mean work, copy;
};

std::vector<DeviceParameter> interference_parameters() {
    const Range share{1e-4, 0.95};
    return {{"interference", "compute_lost_to_dma", 0.13, 1.5, share,
             "estimate: GEMMs of two GPUs that pull from each other take 6.5 % longer, and leave 3 % of "
             "units idle"},
            {"interference", "compute_lost_to_copy_kernels", 0.1, 1.5, share,
             "estimate: GEMMs take 2.5 % longer while a peer's kernels pull, and leave 3 % of units idle"}};
}

/// Classes of one side (GEMM or copies) of a case.
std::vector<std::string> classes_of(const BesideCase& one, const std::string& side,
                                    const std::string& suffix) {
    if (one.judged.empty()) return {side, group_of(one.beside) + suffix};
    const std::string& shapes = judged.at(one.judged);
    std::vector<std::string> classes{group_of(one.beside) + shapes + suffix};
    if (every_kind.contains(one.judged)) classes.push_back(side + shapes);
    return classes;
}

/// Both sides of a case. The fit uses GEMMs beside copies of 64 MiB.
void add_rows(const BesideCase& one, DeviceProblem& problem) {
    const Beside& beside = one.beside;
    const bool fitted = one.judged.empty() && std::holds_alternative<GemmShape>(beside.work) &&
                        beside.size.si() == 64.0 * (1 << 20) && !beside.everywhere &&
                        beside.work_units == 0 && beside.kind != "dma_in_memcpy";
    const auto add = [&](const Mean& measured, const std::string& side, bool of_work) {
        if (measured.count == 0) return;
        const std::string suffix = of_work ? ", work" : ", copies";
        problem.rows.push_back(
            {.name = beside.name() + ", " + side,
             .family = one.judged.empty() ? beside.work_name() : "shapes in no fit",
             .classes = classes_of(one, side, suffix),
             .measured = measured.value(),
             .weight = fitted && of_work ? 1.0 : 0.0,
             .predict = [beside, of_work](const Machines& machines) {
                 const BesideTimes times = predict_beside(beside, machine_of(machines, beside.gpus()));
                 return of_work ? times.work / times.work_alone : times.copy / times.copy_alone;
             }});
    };
    add(one.work, work_side, true);
    add(one.copy, copy_side, false);
}

/// Samples alternate between waits of `wait_us` and of half a GEMM more.
void add_late(ConfigObject line, DeviceProblem& problem) {
    const Beside beside = read_beside(line);
    const Seconds wait = microseconds(line.number("wait_us", positive));
    std::array<std::vector<double>, 2> samples;
    int turn = 0;
    for (const double us : line.numbers("samples", positive))
        samples[static_cast<std::size_t>(turn++ % 2)].push_back(us);
    for (std::size_t half = 0; half < samples.size(); ++half) {
        std::vector<double>& sorted = samples[half];
        std::sort(sorted.begin(), sorted.end());
        problem.rows.push_back({.name = beside.name() + (half ? ", late by half a GEMM" : ", late"),
                                .family = beside.work_name(),
                                .classes = {late},
                                .measured = sorted.at(sorted.size() / 2),
                                .weight = 0,
                                .predict = [beside, wait, half](const Machines& machines) {
                                    return predict_late(beside, wait, half ? 0.5 : 0.0,
                                                        machine_of(machines, beside.gpus()));
                                }});
    }
}

}  // namespace

DeviceProblem interference_factors(const std::filesystem::path& folder, const std::string& shown) {
    DeviceProblem problem{
        .name = "interference",
        .parameters = interference_parameters(),
        .families = "GEMM shape",
        .file = shown + "/local.jsonl, two_gpus.jsonl, four_gpus.jsonl, beside.jsonl, beside_2.jsonl",
        .unit = "1; us"};
    for (const std::string& side : {work_side, copy_side}) {
        const std::string suffix = side == work_side ? ", work" : ", copies";
        problem.classes.push_back(side);
        for (const std::string& group : groups) problem.classes.push_back(group + suffix);
        for (const auto& [list, shapes] : judged) {
            if (every_kind.contains(list)) problem.classes.push_back(side + shapes);
            for (const std::string& group : groups)
                if (every_kind.contains(list) || group == groups.back())
                    problem.classes.push_back(group + shapes + suffix);
        }
    }
    problem.classes.push_back(late);
    std::map<std::string, BesideCase> cases;
    // Kernels that wait for units of a GEMM are in files of their own, measured with means (Beside::waits).
    for (const std::string name : {"local", "two_gpus", "four_gpus", "beside", "beside_2", "more_shapes",
                                   "more_shapes_2", "unseen", "unseen_2", "drawn", "redrawn", "redrawn_2"}) {
        // The second machine's file belongs to the same list
        const std::string list = name.substr(0, name.find("_2"));
        const bool anew = list == "beside", seen = !judged.contains(list);
        const std::filesystem::path path = folder / (name + ".jsonl");
        if (!std::filesystem::exists(path)) continue;
        const MeasurementFile file = read_measurements(path);
        if (seen) problem.date = file.date();
        for (const Measurement& measurement : file.measurements) {
            if (measurement.kind == "late_copy" && measurement.pass == 1)
                add_late(file.view(measurement), problem);
            if (measurement.kind != "interference") continue;
            ConfigObject line = file.view(measurement);
            const Beside beside = read_beside(line);
            if (beside.waits() && seen && !anew) continue;
            BesideCase& one =
                cases.try_emplace(beside.name(), BesideCase{beside, seen ? "" : list, {}, {}}).first->second;
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
