#pragma once

#include <filesystem>
#include <string>

#include "models/calibration/fits/fit_device.hpp"

namespace overlap {

/// How far GPUs of one kind are apart in the same GEMM: the same shapes on every GPU of several nodes
/// (`folder`/parts_*.jsonl). A row a node, since a GPU is as much slower in one GEMM as in another: the
/// slowest GPU's time less the fastest's over the mean, median over shapes.
DeviceProblem gpu_speeds(const std::filesystem::path& folder, const std::string& shown);

}  // namespace overlap
