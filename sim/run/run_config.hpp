#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/config_reader.hpp"

namespace overlap {

struct Plan;

inline const std::string default_workload = "llama3_70b_gate_up_forward";
inline const std::string default_engine = "flow";
/// Number of seeds if the machine leaves an order unspecified; 1 otherwise.
inline constexpr int default_seeds = 15;
inline constexpr int most_seeds = 100'000;

/// once: one run from cool GPUs. steady: back to back until the clocks have settled.
enum class Repeat { once, steady };
inline const std::array<std::string, 2> repeat_names{"once", "steady"};

/// A run config as given (configs/schema/run.schema.json) by a file, a line of a batch, or
/// flags. `origin` is for errors.
struct RunConfig {
    std::string origin;  ///< file, "batch.jsonl line 3", or "command line"
    std::string topology;
    std::string schedule;
    Json params = Json::object();
    Json schedules = Json::object();   ///< by GEMM of a list: {"schedule", "params"} of its pair
    Json workload = default_workload;  ///< file name, or a workload object
    std::string engine = default_engine;
    std::optional<int> seeds;
    std::vector<std::string> cost_models;
    std::vector<std::string> without;
    Json what_if = Json::object();  ///< changes of values of the machine's files (see WhatIf)
    Repeat repeat = Repeat::once;
    std::string host;                       ///< file, or name in configs/hosts; empty: default_host
    Json plan = {};                         ///< instead of a schedule: file name, or a plan; null: none
    std::shared_ptr<const Plan> read = {};  ///< the plan, where it has been read
    bool allow_large = false;               ///< run even if it takes more memory than there is

    bool has_plan() const { return read != nullptr || !plan.is_null(); }
};

/// Absent keys get their defaults; topology and schedule stay empty for flags to fill.
RunConfig read_run_config(const Json& json, const std::string& origin);
/// What is read back as an equal config.
Json to_json(const RunConfig& config);
Json run_schema();
/// Keys that an axis of a sweep may set as a whole: all but those whose members are axes of their own.
std::vector<std::string> swept_keys();

}  // namespace overlap
