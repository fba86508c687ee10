#pragma once

#include <filesystem>
#include <string>

#include "models/calibration/fits/fit_device.hpp"

namespace overlap {

/// Spread of GEMM times between GPUs of one kind: the same shapes on every GPU of several nodes
/// (`folder`/parts_*.jsonl). One row for each node, because a GPU is slower by the same factor in every GEMM:
/// (slowest − fastest) / mean, median over shapes.
DeviceProblem gpu_speeds(const std::filesystem::path& folder, const std::string& shown);

}  // namespace overlap
