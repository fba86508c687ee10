#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "models/calibration/fits/fit_device.hpp"

namespace overlap {

/// The measurements of energy that go with those in `folder`: `folder`/energy.jsonl, else those of the same
/// kind of GPU in traces/*/energy, where `folder` is traces/…/microbench. Sorted; empty where there are none.
std::vector<std::filesystem::path> energy_files(const std::filesystem::path& folder);

/// Idle and active power, joules of FLOPs and bytes, fitted to the mean power of GPUs that do one thing for
/// seconds, given the measured rate of it. GEMMs are fitted to in bursts, at the peak clock; at the power
/// limit they are predicted to take just that. `shown`: the folder of the files as others name it.
DeviceProblem energy_of_work(const std::vector<std::filesystem::path>& files, const std::string& shown);

}  // namespace overlap
