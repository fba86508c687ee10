#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/config_folder.hpp"
#include "sim/effects.hpp"
#include "sim/engine/engine.hpp"
#include "sim/report/result.hpp"
#include "sim/schedules/schedule.hpp"

namespace overlap {

inline const std::string default_workload = "llama3_70b_gate_up_forward";
inline const std::string default_engine = "flow";
/// Of a machine that leaves an order unspecified; 1 elsewhere.
inline constexpr int default_seeds = 15;
inline constexpr int most_seeds = 100'000;

/// A run config as given (ARCHITECTURE section 7): a file, a line of a batch, or flags. Where it came from is
/// kept for errors.
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
};

/// Keys that are absent keep their defaults; topology and schedule are left empty for flags to fill.
RunConfig read_run_config(const Json& json, const std::string& origin);

/// A run config with everything looked up, checked and filled in.
struct Scenario {
    Machine machine;
    Workload workload;
    const ScheduleEntry* schedule = nullptr;
    ScheduleParams params;
    std::string engine;
    int seeds = 1;  ///< simulations of what the machine leaves unspecified, with seeds 0 … seeds − 1
    std::vector<std::string> cost_models;
    std::vector<std::string> without;
    Json what_if = Json::object();  ///< how `machine` differs from its files

    /// The resolved config: reading it back gives the same scenario.
    Json config() const;
    TaskGraph graph() const;
};

/// Throws UserError with the first thing that is wrong.
Scenario resolve(const RunConfig& config, const ConfigFolder& folder);

/// What a run takes, without baseline and losses.
struct Prediction {
    Seconds makespan, p10, p90;  ///< median and quantiles over the seeds
    std::size_t seeds = 1;
    Timeline timeline;  ///< of a median run
};
Prediction predict(const Scenario& scenario);

/// Runs the schedule and, for the baseline and the losses, `serial` and the counterfactuals. Every time is
/// the median over the seeds; the timeline is that of a median run.
RunResult run(const Scenario& scenario);

}  // namespace overlap
