#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/run/run.hpp"
#include "sim/run/run_config.hpp"

namespace overlap {

/// One run of the program that measured: makespans after warm-up.
struct MeasuredRun {
    std::string date;
    std::vector<Seconds> samples;  ///< at least one
    Seconds median() const;
};

/// What is claimed of a case by itself, as of a published figure.
struct CaseTolerance {
    double error = 0;        ///< largest |predicted / measured − 1|
    bool known_gap = false;  ///< outside, for `reason`; an error once it is inside
    std::string reason;
};

/// One measured case (traces/README.md; configs/schema/measured_case.schema.json).
struct MeasuredCase {
    std::string origin;  ///< file, with the line in JSON Lines
    std::string system;
    std::string source;  ///< where it was measured or published; may be empty
    RunConfig config;    ///< what ran; the scenario as a run config
    std::vector<MeasuredRun> runs;
    std::optional<Timeline> timeline;  ///< spans of one run, where recorded
    std::optional<CaseTolerance> tolerance;

    /// Median over the samples of all runs.
    Seconds makespan() const;
    /// Largest |median of a run / median of all − 1|; 0 with one run.
    double spread() const;
};

/// Cases of files (*.json one case, *.jsonl one a line), of folders (all such files below them) and of
/// patterns with * ? [ ]. Files come in the order of their paths; the same scenario of the same system,
/// measured again, adds its runs to the first. Lines in which replay says that it could not measure are left
/// out. Throws UserError for a path that is not there, a pattern or folder without any file, and for the
/// first bad case.
std::vector<MeasuredCase> read_measured_cases(std::span<const std::string> paths);

}  // namespace overlap
