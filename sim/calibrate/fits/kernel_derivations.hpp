#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/calibrate/recipes/kernel_recipes.hpp"

namespace overlap {

/// Writes the scaled fits (scaled_kernels()) of each derivation whose device is of `devices` (or all, if empty) to
/// `folder`/<device>.json, from `folder`/<from>.json. `device_files`: the folder of device files. Returns the devices.
std::vector<std::string> write_derived_kernels(const std::vector<KernelDerivation>& derivations,
                                               const std::filesystem::path& device_files,
                                               const std::filesystem::path& folder, const std::string& date,
                                               const std::vector<std::string>& devices);

}  // namespace overlap
