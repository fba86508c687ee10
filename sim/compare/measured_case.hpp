#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/report/comparison/verdict.hpp"
#include "sim/run/run.hpp"
#include "sim/run/run_config.hpp"

namespace overlap {

/// One run of the measuring program: makespans after warm-up.
struct MeasuredRun {
    std::string date;
    std::vector<Seconds> samples;  ///< at least one
    Seconds median() const;
};

/// Facts of the machine that ran, as the line before its cases has them.
struct MeasuredOn {
    std::string device;                        ///< as the driver calls it
    double compute_units = 0, memory_GiB = 0;  ///< 0: not known
};

/// One measured case (traces/README.md; configs/schema/measured_case.schema.json).
struct MeasuredCase {
    std::string origin;  ///< file, with the line in JSON Lines
    std::string system;
    std::optional<MeasuredOn> machine;
    RunConfig config;  ///< what ran; the scenario as a run config
    std::vector<MeasuredRun> runs;
    std::optional<Timeline> timeline;  ///< spans of one run, if recorded
    std::optional<CaseTolerance> tolerance;

    /// Median over the samples of all runs.
    Seconds makespan() const;
    /// Largest |median of a run / median of all − 1|; 0 with one run.
    double spread() const;
};

/// Cases from files (*.json: one case; *.jsonl: one case a line), from folders (all such files below them)
/// and from patterns with * ? [ ], in the order of their paths. A repeated measurement of the same scenario
/// on the same system adds its runs to the first case. Lines in which replay reports a failure are left out.
/// Throws UserError for a missing path, a pattern or folder without files, and the first invalid case.
std::vector<MeasuredCase> read_measured_cases(std::span<const std::string> paths);
/// Lets `measured` be predicted on DEVICE_<gpus> of the folder `topologies` (empty: of the shipped one), whatever
/// device its topology and its machine line name. Plans of `scripts/measure` name the device that they were drawn on.
void put_on_device(MeasuredCase& measured, const std::string& device,
                   const std::filesystem::path& topologies = {});
Json measured_case_schema();

}  // namespace overlap
