#pragma once

#include "sim/core/recent_values.hpp"
#include "sim/run/least_times.hpp"
#include "sim/run/scenario.hpp"

namespace overlap {

/// The workload without overlap, by the schedule `serial`.
struct Baseline {
    std::string name;  ///< for readers: "serial by NCCL 2.29.2", "serial/-/dma/pull"
    Seconds makespan;
    Seconds computation;  ///< computation alone
    LeastTimes least;     ///< of fastest_serial the least of all ways
};
/// With the scenario's own transfers.
Baseline own_serial(const Scenario& scenario);
/// The fastest execution without overlap: `serial` by DMA, by copy kernels or by the vendor's library. Beyond 128 GPUs
/// only `serial` with the scenario's own transfers is simulated, because a simulation takes long there.
Baseline fastest_serial(const Scenario& scenario);

/// Caches the results of own_serial and fastest_serial, which many scenarios share: the last 256 requests. Thread-safe.
class Baselines {
public:
    Baseline own(const Scenario& scenario);
    Baseline fastest(const Scenario& scenario);

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
        PlanPtr plan;  ///< of one that says no workload

        friend bool operator==(const Key&, const Key&) = default;
    };
    struct Hash {
        std::size_t operator()(const Key& key) const;
    };
    static Key key_of(const Scenario& scenario, ScheduleParams params);

    RecentValues<Key, Baseline, Hash> own_{256}, fastest_{256};
};

}  // namespace overlap
