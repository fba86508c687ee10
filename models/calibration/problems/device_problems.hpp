#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "models/calibration/fits/fit_device.hpp"
#include "sim/run/config_folder.hpp"

namespace overlap {

/// What of a device is fitted to the microbenchmark's files in `folder`, in order: each fit sees the values
/// of those before it. `shown` is the folder as the calibration file names it.
std::vector<DeviceProblem> device_problems(const std::string& device, const std::filesystem::path& folder,
                                           const std::string& shown);

/// Fits all of them, beside GEMMs as `gemms` has them. Problems whose files are not there are left out.
/// Nothing of an earlier calibration of these groups is used.
std::vector<DeviceCalibration> calibrate_device(const Calibration& gemms, const std::filesystem::path& folder,
                                                const std::string& shown, const ConfigFolder& configs);

/// The groups of calibrated_groups as a calibration file has them.
Json device_groups(const std::vector<DeviceCalibration>& calibrations);

}  // namespace overlap
