#pragma once

#include <filesystem>
#include <string>

#include "models/calibration/fits/fit_device.hpp"

namespace overlap {

/// The `dma` group of the H200, fitted to copies between GPUs in two_gpus.jsonl and four_gpus.jsonl.
DeviceProblem dma_copies(const std::filesystem::path& folder, const std::string& shown);

}  // namespace overlap
