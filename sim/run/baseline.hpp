#pragma once

#include "sim/core/recent_values.hpp"
#include "sim/run/scenario.hpp"

namespace overlap {

/// What a schedule is held against: `serial` with the same workload, machine and transfers.
struct Baseline {
    Seconds makespan;
    Seconds computation;          ///< alone
    Seconds least_communication;  ///< see LeastTimes
};
Baseline baseline_of(const Scenario& scenario);

/// Baselines of scenarios, many of which share theirs: the 256 asked for last. Thread-safe.
class Baselines {
public:
    Baseline get(const Scenario& scenario);

private:
    /// The machine is kept, so that the key, which has its address, stays its own.
    struct Kept {
        Baseline baseline;
        std::shared_ptr<const Machine> machine;
    };
    RecentValues<std::string, Kept> kept_{256};
};

}  // namespace overlap
