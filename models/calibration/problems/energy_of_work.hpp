#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "models/calibration/fits/fit_device.hpp"

namespace overlap {

/// The energy measurements that belong to `folder`: `folder`/energy.jsonl, or those of the same kind of GPU
/// in traces/*/energy if `folder` is traces/…/microbench. Sorted; empty if there are none.
std::vector<std::filesystem::path> energy_files(const std::filesystem::path& folder);

/// Fits idle and active power and the joules of FLOPs and bytes to the mean power of GPUs that repeat one
/// operation for seconds, at its measured rate. GEMMs are fitted in bursts, at the peak clock; at the power
/// limit the prediction must equal the limit. `shown`: the folder's name in the file.
DeviceProblem energy_of_work(const std::vector<std::filesystem::path>& files, const std::string& shown);

}  // namespace overlap
