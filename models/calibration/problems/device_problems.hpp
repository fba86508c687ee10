#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "models/calibration/fits/fit_device.hpp"
#include "sim/run/config_folder.hpp"

namespace overlap {

/// The fits of a device to the microbenchmark files in `folder`, in order: each fit uses the values of the
/// fits before. `shown`: the folder's name in the calibration file.
std::vector<DeviceProblem> device_problems(const std::string& device, const std::filesystem::path& folder,
                                           const std::string& shown);

/// Runs all fits with GEMM parameters `gemms`. Problems whose files are missing are left out. No
/// value of an earlier calibration of these groups is used. `fitted` is called after each fit.
std::vector<DeviceCalibration> calibrate_device(const Calibration& gemms, const std::filesystem::path& folder,
                                                const std::string& shown, const ConfigFolder& configs,
                                                const std::function<void()>& fitted = nullptr);

/// The groups of calibrated_groups in the form of a calibration file.
Json device_groups(const std::vector<DeviceCalibration>& calibrations);

}  // namespace overlap
