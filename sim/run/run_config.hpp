#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/core/config_reader.hpp"

namespace overlap {

inline const std::string default_workload = "llama3_70b_gate_up_forward";
inline const std::string default_engine = "flow";
/// Of a machine that leaves an order unspecified; 1 elsewhere.
inline constexpr int default_seeds = 15;
inline constexpr int most_seeds = 100'000;

/// A run config as given (configs/schema/run.schema.json): a file, a line of a batch, or flags. Where it came
/// from is kept for errors.
struct RunConfig {
    std::string origin;  ///< file, "batch.jsonl line 3", or "command line"
    std::string topology;
    std::string schedule;
    Json params = Json::object();
    Json workload = default_workload;  ///< file name, or a workload object
    std::string engine = default_engine;
    std::optional<int> seeds;
    std::vector<std::string> cost_models;
    std::vector<std::string> without;
    Json what_if = Json::object();  ///< changes of the machine's files (see WhatIf)
    bool allow_large = false;       ///< also where it takes more memory than there is
};

/// Keys that are absent keep their defaults; topology and schedule are left empty for flags to fill.
RunConfig read_run_config(const Json& json, const std::string& origin);

}  // namespace overlap
