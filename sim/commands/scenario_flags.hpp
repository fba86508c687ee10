#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sim/run/config_folder.hpp"
#include "sim/run/run_config.hpp"

namespace overlap {

/// Flags for the workload: a file, or changes to one.
struct WorkloadFlags {
    std::string workload, gemm, dtype, collective, order, shard_dim;

    void add_to(CLI::App& app);
    /// Applies the given flags to `config`. Throws UserError.
    void apply(RunConfig& config, const ConfigFolder& folder) const;
};

/// Flags for a scenario: all of a run config.
struct ScenarioFlags {
    std::string file, topology, schedule, plan, engine, host;
    WorkloadFlags workload;
    std::vector<std::string> params, what_if, cost_models, without;
    std::optional<int> seeds;
    bool steady = false;

    void add_to(CLI::App& app);
    /// Whether neither machine nor schedule nor config is given.
    bool is_empty() const { return topology.empty() && schedule.empty() && plan.empty() && file.empty(); }
    /// The run config that the flags give. Throws UserError.
    RunConfig config(const ConfigFolder& folder) const;
};

/// `--topology`, and `--nodes`, which makes `topology` the name of a cluster.
CLI::Option* add_topology_flags(CLI::App& app, std::string& topology, const std::string& meaning = "Machine");
/// `--what-if`, `--library` and `--attention`, into `what_ifs`.
void add_what_if_flag(CLI::App& app, std::vector<std::string>& what_ifs);
/// `--host` and `--steady`: how a workload is run in a program.
void add_host_flags(CLI::App& app, std::string& host, bool& steady);
/// Adds "KEY=VALUE" texts to the what-if of a run config. Throws UserError.
void assign_what_ifs(Json& what_if, const std::vector<std::string>& assignments);

}  // namespace overlap
