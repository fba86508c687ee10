#pragma once

#include "sim/core/recent_values.hpp"
#include "sim/run/least_times.hpp"
#include "sim/run/scenario.hpp"

namespace overlap {

/// What a schedule is compared with: `serial` with the same workload, machine and transfers.
struct Baseline {
    Seconds makespan;
    Seconds computation;  ///< computation alone
    LeastTimes least;
};
Baseline baseline_of(const Scenario& scenario);

/// Caches baselines, which many scenarios share: the last 256 requests. Thread-safe.
class Baselines {
public:
    Baseline get(const Scenario& scenario);

private:
    /// All of a scenario that its baseline depends on. Keeps machine and host alive, whose addresses are compared.
    struct Key {
        std::shared_ptr<const Machine> machine;
        std::shared_ptr<const Host> host;
        decltype(Workload::content) work;
        ScheduleParams params;
        std::string engine;
        int seeds;
        std::vector<std::string> cost_models, without;
        Repeat repeat;

        friend bool operator==(const Key&, const Key&) = default;
    };
    struct Hash {
        std::size_t operator()(const Key& key) const;
    };
    RecentValues<Key, Baseline, Hash> kept_{256};
};

}  // namespace overlap
