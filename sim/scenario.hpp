#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/config_folder.hpp"
#include "sim/core/recent_values.hpp"
#include "sim/schedules/schedule.hpp"

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

/// A run config with everything looked up, checked and filled in.
struct Scenario {
    std::shared_ptr<const Machine> machine;  ///< never null; scenarios share it
    Workload workload;
    const ScheduleEntry* schedule = nullptr;
    ScheduleParams params;
    std::string engine;
    int seeds = 1;  ///< simulations of what the machine leaves unspecified, with seeds 0 … seeds − 1
    std::vector<std::string> cost_models;
    std::vector<std::string> without;
    Json what_if = Json::object();  ///< how the machine differs from its files
    /// Where set, called after each simulation of a graph, by any thread: for showing progress.
    std::function<void()> simulated = nullptr;

    /// The resolved config: reading it back gives the same scenario.
    Json config() const;
    TaskGraph graph() const;
};

/// Resolves configs, of which many name the same files: each file is read once, as long as it is among those
/// asked for last. Thread-safe; the memory it takes is bounded by some tens of machines.
class Resolver {
public:
    /// `at_once`: runs that are to share the memory of the machine.
    explicit Resolver(ConfigFolder folder, int at_once = 1)
        : folder_(std::move(folder)), at_once_(at_once) {}
    /// Throws UserError with the first thing that is wrong, which may be that the run takes more memory than
    /// there is (sim/budget.hpp).
    Scenario resolve(const RunConfig& config);

private:
    using MachinePtr = std::shared_ptr<const Machine>;

    Workload workload(const RunConfig& config);
    /// The machine of that key, multiplying for as long as the workload does.
    MachinePtr sustaining(const MachinePtr& machine, const std::string& key, const Workload& workload);

    ConfigFolder folder_;
    int at_once_;
    RecentValues<std::string, std::shared_ptr<const Workload>> workloads_{256};
    RecentValues<std::string, MachinePtr> machines_{32};   ///< by topology and what-if
    RecentValues<std::string, MachinePtr> sustained_{32};  ///< the same, for how long they multiply
};

/// One config, for whom it is the only one.
Scenario resolve(const RunConfig& config, const ConfigFolder& folder);

}  // namespace overlap
