#pragma once

#include "sim/core/recent_values.hpp"
#include "sim/run/scenario.hpp"

namespace overlap {

/// What a schedule is compared with: `serial` with the same workload, machine and transfers.
struct Baseline {
    Seconds makespan;
    Seconds computation;          ///< computation alone
    Seconds least_communication;  ///< see LeastTimes
};
Baseline baseline_of(const Scenario& scenario);

/// Caches baselines, which many scenarios share: the last 256 requests. Thread-safe.
class Baselines {
public:
    Baseline get(const Scenario& scenario);

private:
    /// Keeps machine and host alive, because their addresses are parts of the key.
    struct Kept {
        Baseline baseline;
        std::shared_ptr<const Machine> machine;
        std::shared_ptr<const Host> host;
    };
    RecentValues<std::string, Kept> kept_{256};
};

}  // namespace overlap
