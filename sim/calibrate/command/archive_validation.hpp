#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sim/calibrate/fits/fit_device.hpp"
#include "sim/calibrate/fits/measured_calibration.hpp"
#include "sim/calibrate/measurements/measured_machine.hpp"
#include "sim/report/comparison/comparison.hpp"

namespace overlap {

/// A measurement that no fit saw, and what the fits predict.
struct UnseenCase {
    std::string kind, name, unit;
    double measured = 0, predicted = 0;
    double error() const { return predicted / measured - 1; }
};

/// What was fitted to what.
struct FitOrigins {
    std::string name;
    std::size_t cases = 0;
    std::vector<std::string> undetermined;  ///< parameters that stay at their priors
};

/// How well a measured machine is predicted.
struct ArchiveValidation {
    std::string device, archive;
    const MeasuredMachine& machine;
    std::vector<FitOrigins> fits;
    std::vector<std::pair<std::string, ErrorSummary>> classes;  ///< of what no fit saw
    std::vector<UnseenCase> unseen;                             ///< worst first
    std::optional<Comparison> schedules;                        ///< whole schedules, if they were measured

    /// That a user can quote.
    std::string sentence() const;
};

/// Errors of the fits on what they did not see.
ArchiveValidation validate_fits(const std::string& device, const std::string& archive,
                                const MeasuredMachine& machine, const std::vector<MeasuredCalibration>& gemms,
                                const std::vector<DeviceCalibration>& others);

/// Whether `file` is there and has a case.
bool holds_cases(const std::filesystem::path& file);
/// Predicts the schedules of `folder`/replays.jsonl on `topologies`/DEVICE_<gpus>.json. None if no schedule was
/// measured.
std::optional<Comparison> compare_replays(const std::filesystem::path& folder,
                                          const std::filesystem::path& topologies, const std::string& device);

std::string to_text(const ArchiveValidation& validation);
/// The group "validation" of the calibration file.
Json to_json(const ArchiveValidation& validation);
Json validation_schema();
Page page_of(const ArchiveValidation& validation);

}  // namespace overlap
