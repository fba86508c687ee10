#pragma once

#include <filesystem>
#include <string>

#include "models/calibration/fits/fit_device.hpp"

namespace overlap {

/// Copies between GPUs by kernels: part of the `copy_kernel` group, fitted to two_gpus.jsonl and, of three GPUs and
/// more, four_gpus.jsonl.
DeviceProblem kernel_copies(const std::filesystem::path& folder, const std::string& shown,
                            const HeldOut& held_out = {});

}  // namespace overlap
