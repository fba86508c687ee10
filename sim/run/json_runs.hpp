#pragma once

#include "sim/run/baseline.hpp"
#include "sim/run/remarks.hpp"
#include "sim/run/resolver.hpp"

namespace overlap {

/// Runs configs given as JSON, as `sim batch` and the Python module do. Thread-safe; keeps files that it read, and
/// baselines.
class JsonRuns {
public:
    explicit JsonRuns(const ConfigFolder& folder) : resolver_(folder), remarker_(folder) {}
    /// The result, as `sim --format json` prints it, of a run config (configs/schema/run.schema.json); `origin` is
    /// for errors. Throws UserError.
    Json run(const Json& config, const std::string& origin);
    /// Simulates a plan, given as JSON text; the config has no schedule.
    Json simulate(const Json& config, const std::string& plan, const std::string& origin);

private:
    Json run(const RunConfig& config);

    Resolver resolver_;
    Baselines baselines_;
    Remarker remarker_;
};

}  // namespace overlap
