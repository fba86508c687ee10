#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sim/calibrate/fits/fit_device.hpp"
#include "sim/run/config_folder.hpp"

namespace overlap {

/// A device and machines of it, as in configs/.
struct DeviceFiles {
    Json device;  ///< fitted values replace those that it has
    std::map<std::string, Json>
        topologies;  ///< by name; of machines with equal numbers of GPUs the first counts
    /// Fits start from values of `device` instead of their own estimates, and leave out optional keys that it lacks.
    bool has_priors = false;
};
DeviceFiles device_files(const ConfigFolder& configs, const std::string& device);
/// Drops keys of the group copy_kernel that may not stand beside a key of `known`.
void drop_excluded(Json& group, const Json& known);
/// Drops the values of `device` that `known` has, too, and what these exclude.
void drop_known(Json& device, const Json& known);

/// The fits of a device to the microbenchmark files in `folder`, in order: each fit uses the values of the
/// fits before. `shown`: the folder's name in the calibration file. Problems without rows to fit are left out.
std::vector<DeviceProblem> device_problems(const std::filesystem::path& folder, const std::string& shown,
                                           const HeldOut& held_out = {});

/// Runs all fits with GEMM parameters `gemms`. Problems whose files are missing are left out. No
/// value of an earlier calibration of these groups is used. `fitted` is called after each fit.
std::vector<DeviceCalibration> calibrate_device(const Calibration& gemms, const std::filesystem::path& folder,
                                                const std::string& shown, const DeviceFiles& files,
                                                const HeldOut& held_out = {},
                                                const std::function<void()>& fitted = nullptr);

/// Runs the fits of a device to the public tables in `data`/overlap; empty if there are none.
std::vector<DeviceCalibration> calibrate_from_overlap_tables(const Calibration& gemms,
                                                             const std::filesystem::path& data,
                                                             const DeviceFiles& files);

/// The groups of calibrated_groups in the form of a calibration file.
Json device_groups(const std::vector<DeviceCalibration>& calibrations);

}  // namespace overlap
