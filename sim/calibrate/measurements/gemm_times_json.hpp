#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/core/config_reader.hpp"

namespace overlap {

/// Files of GEMMs measured on every GPU of a node, one file for each node:
/// `folder`/parts_1.jsonl, parts_2.jsonl, …
std::vector<std::filesystem::path> parts_files(const std::filesystem::path& folder);

/// The group `measured_gemms` of a calibration, from all GEMMs on all compute units in `folder`/gemm.jsonl and
/// parts_*.jsonl. A time with cold weights counts only where no warm one exists. Time: µs in a chain of GEMMs without
/// events, mean over GPUs and passes. Tiles: of the kernel that the library chose, if the library reports it: its
/// waves times the machine's compute units. `shown`: the folder's name in the file. Throws UserError with file and
/// line for a missing or impossible field.
Json gemm_times_json(const std::filesystem::path& folder, const std::string& shown);

}  // namespace overlap
