#pragma once

#include <filesystem>
#include <string>

#include "models/calibration/fits/fit_device.hpp"

namespace overlap {

/// The `dma` group, fitted to copies between GPUs in two_gpus.jsonl and, of three GPUs and more, four_gpus.jsonl and
/// at_once.jsonl.
DeviceProblem dma_copies(const std::filesystem::path& folder, const std::string& shown, const HeldOut& held_out = {});

}  // namespace overlap
