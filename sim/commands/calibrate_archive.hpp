#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/compare/measured_case.hpp"

namespace overlap {

/// Fits the models to an archive of scripts/measure, or to the folder that it was made of, and writes
/// devices/NAME.json, calibrations/NAME.json, topologies/NAME_<gpus>.json and the page validation/NAME.html into `out`. What was not measured stays
/// that of the nearest shipped device: as it is if `name` is empty or that device, else as an estimate. Returns what
/// it did, with the errors on what no fit saw. Throws UserError.
std::string calibrate_archive(const std::filesystem::path& archive, std::string name,
                              const std::filesystem::path& out);

/// Whether `path` is an archive of scripts/measure, or the folder that one is made of.
bool is_archive(const std::filesystem::path& path);
/// The schedules that an archive has measured, on `device`_<gpus>; empty: on the shipped device that its facts match.
/// Throws UserError.
std::vector<MeasuredCase> schedules_of_archive(const std::filesystem::path& archive, std::string device);

}  // namespace overlap
