#pragma once

#include <filesystem>
#include <string>

#include "models/calibration/fits/fit_device.hpp"

namespace overlap {

/// How much GEMMs and copies that run beside each other slow each other (`interference` cases), and when a
/// copy gets in that becomes ready in the middle of a GEMM (`late_copy`): the `interference` group of the
/// H200. Predicted by simulating the case, GEMM chain and copy chains, and taking times from it as the
/// microbenchmark does.
DeviceProblem interference_factors(const std::filesystem::path& folder, const std::string& shown);

}  // namespace overlap
