#pragma once

#include <CLI/CLI.hpp>

#include "sim/run/run.hpp"
#include "sim/run/run_config.hpp"

namespace overlap {

/// Flags for the workload: a file, or changes to one.
struct WorkloadFlags {
    std::string workload, gemm, dtype, collective, order, shard_dim;

    void add_to(CLI::App& app);
    /// Applies the given flags to `config`. Throws UserError.
    void apply(RunConfig& config, const ConfigFolder& folder) const;
};

}  // namespace overlap
