#pragma once

#include <CLI/CLI.hpp>

#include "sim/run/run.hpp"
#include "sim/run/run_config.hpp"

namespace overlap {

/// Flags that say what is to be computed: a workload file, or changes to one.
struct WorkloadFlags {
    std::string workload, gemm, dtype, collective, order, shard_dim;

    void add_to(CLI::App& app);
    /// Puts into `config` what was given. Throws UserError.
    void apply(RunConfig& config, const ConfigFolder& folder) const;
};

}  // namespace overlap
