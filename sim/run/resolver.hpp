#pragma once

#include <memory>
#include <string>
#include <utility>

#include "sim/core/recent_values.hpp"
#include "sim/run/run_config.hpp"
#include "sim/run/scenario.hpp"

namespace overlap {

/// Resolves configs, of which many name the same files: each file is read once, as long as it is among those
/// asked for last. Thread-safe; the memory it takes is bounded by some tens of machines.
class Resolver {
public:
    /// `at_once`: runs that are to share the memory of the machine.
    explicit Resolver(ConfigFolder folder, int at_once = 1) : folder_(std::move(folder)), at_once_(at_once) {}
    /// Throws UserError with the first thing that is wrong, which may be that the run takes more memory than
    /// there is (sim/run/budget.hpp).
    Scenario resolve(const RunConfig& config);

private:
    using MachinePtr = std::shared_ptr<const Machine>;

    Workload workload(const RunConfig& config);
    /// The machine of that key, multiplying for as long as the workload does.
    MachinePtr sustaining(const MachinePtr& machine, const std::string& key, const Workload& workload);

    ConfigFolder folder_;
    int at_once_;
    RecentValues<std::string, SchedulePtr> schedules_{64};
    RecentValues<std::string, std::shared_ptr<const Workload>> workloads_{256};
    RecentValues<std::string, MachinePtr> machines_{32};   ///< by topology and what-if
    RecentValues<std::string, MachinePtr> sustained_{32};  ///< the same, for how long they multiply
};

/// One config, for whom it is the only one.
Scenario resolve(const RunConfig& config, const ConfigFolder& folder);

}  // namespace overlap
