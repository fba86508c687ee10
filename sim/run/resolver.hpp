#pragma once

#include <memory>
#include <string>
#include <utility>

#include "sim/core/recent_values.hpp"
#include "sim/run/planned.hpp"
#include "sim/run/run_config.hpp"
#include "sim/run/scenario.hpp"

namespace overlap {

/// How long a workload's GEMMs keep a GPU busy, whole and back to back. Parts of the GEMMs run at the clock of the
/// whole, not at that of a short kernel.
Seconds multiplying_time(const Workload& workload, const Calibration& calibration);

/// Whether the device's files have all keys for which the host has values. These were measured on GPUs that are
/// described so; others keep their own.
bool knows_device(const Host& host, const MachineFiles& machine);

/// Resolves configs. Many configs name the same files, so the last files are cached. Thread-safe; the cache
/// holds at most some tens of machines.
class Resolver {
public:
    /// `at_once`: number of runs that share the machine's memory.
    explicit Resolver(ConfigFolder folder, int at_once = 1) : folder_(std::move(folder)), at_once_(at_once) {}
    /// Throws UserError with the first mistake, which may be that the run needs more memory than there
    /// is (sim/run/budget.hpp).
    Scenario resolve(const RunConfig& config);
    /// resolve() for runs of which only the numbers are wanted, not the timeline: where ranks are alike, the graph has
    /// the tasks of representatives only.
    Scenario resolve_for_numbers(const RunConfig& config);

    using MachinePtr = std::shared_ptr<const Machine>;
    const ConfigFolder& folder() const { return folder_; }
    /// The machine of a config, with its what-ifs and those of its host. Throws UserError.
    MachinePtr machine(const RunConfig& config);
    Workload workload(const RunConfig& config);
    /// `config` with the machine that its plan names, and the changes of the machine's values, where it has a plan.
    RunConfig with_machine(RunConfig config);
    /// The plan of a text, which is read once.
    PlanPtr plan_of_text(const std::string& text);

private:
    /// The plan of a config; null if it has none. Throws UserError.
    PlanPtr plan_of(const RunConfig& config);
    /// `scenario` with the tasks of representatives only, if others are like them.
    Scenario of_representatives(Scenario scenario, const std::string& key);
    std::shared_ptr<const Host> host(const std::string& name);
    /// Name of the machine of a config in the caches.
    std::string machine_key(const RunConfig& config);
    /// The machine with the few nodes of Topology::smaller(); null if there is none.
    MachinePtr smaller_machine(RunConfig config, const Topology& topology);
    /// The machine of that key, with `sustained` set for so much time in GEMMs.
    MachinePtr sustaining(const MachinePtr& machine, const std::string& key, Seconds sustained);

    ConfigFolder folder_;
    int at_once_;
    RecentValues<std::string, SchedulePtr> schedules_{64};
    RecentValues<std::string, std::shared_ptr<const Host>> hosts_{16};
    RecentValues<std::string, std::shared_ptr<const Workload>> workloads_{256};
    RecentValues<std::string, MachinePtr> machines_{32};  ///< by topology and what-if
    RecentValues<std::string, std::optional<Rotations>> alike_{256};
    RecentValues<std::string, MachinePtr> sustained_{32};  ///< by key and by duration of GEMMs
    RecentValues<std::string, PlanPtr> plans_{16};         ///< by file, or by text
    RecentValues<std::string, AlikeTasks> alike_tasks_{16};
};

/// The parameters that a run of `workload` by `schedule` has: `params` with defaults filled in. `origin` names them in
/// errors. Throws UserError.
ScheduleParams parameters_of(const ScheduleEntry& schedule, const Json& params, const Workload& workload,
                             const Topology& topology, const std::string& origin);

/// Resolves a single config.
Scenario resolve(const RunConfig& config, const ConfigFolder& folder);

}  // namespace overlap
