#pragma once

#include <filesystem>
#include <string>

#include "models/calibration/fits/fit_device.hpp"

namespace overlap {

/// Kernels that stream a GPU's own memory on a given number of compute units: copies, packs, scatters, reads,
/// writes, triads and reductions of local.jsonl. Fits the rest of the `copy_kernel` group.
DeviceProblem local_kernels(const std::filesystem::path& folder, const std::string& shown,
                            const HeldOut& held_out = {});

}  // namespace overlap
