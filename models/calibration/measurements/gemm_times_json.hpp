#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/core/config_reader.hpp"

namespace overlap {

/// Files of GEMMs on every GPU of a node, one a node: `folder`/parts_1.jsonl, parts_2.jsonl, …
std::vector<std::filesystem::path> parts_files(const std::filesystem::path& folder);

/// The group `measured_gemms` of a calibration: of every GEMM on all compute units in `folder`/gemm.jsonl and
/// parts_*.jsonl, the time in a chain without an event between, µs, mean over GPUs and passes, and the tiles
/// of the kernel that the library chose, where it says so: its waves by the machine's compute units. `shown`
/// is the folder as the file names it. Throws UserError with file and line for a missing or impossible field.
Json gemm_times_json(const std::filesystem::path& folder, const std::string& shown);

}  // namespace overlap
