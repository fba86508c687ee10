#pragma once

#include <filesystem>
#include <string>

#include "models/calibration/fits/fit_device.hpp"

namespace overlap {

/// The `interference` group: how much GEMMs and copies beside each other slow each other
/// (`interference` cases), and when a copy starts that becomes ready in the middle of a GEMM
/// (`late_copy`). Each case is simulated as chains of GEMMs and copies, and times are taken as the
/// microbenchmark takes them.
DeviceProblem interference_factors(const std::filesystem::path& folder, const std::string& shown);

}  // namespace overlap
