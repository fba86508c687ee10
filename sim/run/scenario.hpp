#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/plan/plan.hpp"
#include "sim/report/run/result.hpp"
#include "sim/run/config_folder.hpp"
#include "sim/run/run_config.hpp"
#include "sim/schedules/listed_pairs.hpp"

namespace overlap {

struct SimulationSettings {
    std::string engine;
    int seeds = 1;  ///< simulations of orders that the machine leaves unspecified, with seeds 0 … seeds − 1
    std::vector<std::string> cost_models;
    std::vector<std::string> without;
};

/// How a machine was named.
struct MachineGiven {
    std::string topology;           ///< file or name
    Json what_if = Json::object();  ///< changes relative to its files
};

/// A run config with all names resolved, values checked and defaults filled in.
struct Scenario {
    std::shared_ptr<const Machine> machine;  ///< never null; scenarios share it
    Workload workload;
    SchedulePtr schedule;  ///< never null
    ScheduleParams params;
    SimulationSettings settings;
    MachineGiven given;
    /// If set, called by any thread after each simulation of a graph, to show progress.
    std::function<void()> simulated = nullptr;
    /// A list's pairs that a schedule of their own runs, in the order of the list. All other operators
    /// run whole, by `schedule` if it serves lists, else one after another.
    std::vector<PairChoice> pairs = {};
    std::string whole_pairs = {};  ///< a line on pairs that `schedule` was to run and does not; may be empty
    std::shared_ptr<const Host> host = nullptr;  ///< null: all is enqueued beforehand, in any order
    Repeat repeat = Repeat::once;
    /// Who is alike in the baseline; in the scenario's own graph: ScheduleParams::transfers.alike
    std::optional<Rotations> serial_alike = {};
    std::optional<SteadyState> steady = {};  ///< of the machine, once its clock has settled for a graph
    PlanPtr plan = nullptr;                  ///< instead of a graph that the schedule builds
    /// A plan's graph of representatives, where `params` say who is alike.
    std::shared_ptr<const TaskGraph> representatives = nullptr;

    /// The resolved config: reading it back gives the same scenario.
    Json config() const;
    TaskGraph graph(GraphLimit limit = GraphLimit()) const;
    /// The graph without the hosts' calls.
    TaskGraph device_graph(GraphLimit limit = GraphLimit()) const;
    /// Whether it says what work is done, so that `serial` can do the same.
    bool has_workload() const { return plan == nullptr || plan->has_workload(); }
    /// A list's tasks, each of which waits for its data only, without the hosts' calls.
    TaskGraph graph_by_data() const;
    /// This scenario with the tasks of all GPUs in its graph.
    Scenario of_all_gpus() const;
    /// `device`, a graph of this workload by `schedule`, as the host enqueues it; `device` itself without one.
    TaskGraph as_enqueued(TaskGraph device, const std::string& schedule) const;
    /// Whether hosts enqueue side by side; else one thread has enqueued all beforehand.
    bool host_calls() const { return host != nullptr && host->threads == HostThreads::one_a_gpu; }
    /// Whether one thread has enqueued all beforehand, by calls that take no time.
    bool enqueued_by_one() const { return host == nullptr || host->is_replay(); }
    /// Whether operators of a list wait for the one before them.
    bool runs_in_sequence() const;
    /// Whether streams run the first operator whose data are there (ListOrder::data).
    bool runs_by_data() const;
    /// Whether its schedule, or one of a list's pairs, needs a kernel of one's own (ScheduleEntry::own_kernel).
    bool needs_own_kernel() const;
    /// How much later than a GPU's first stream its other streams begin.
    Seconds release() const { return host == nullptr ? Seconds() : host->starts.release; }
    /// The graph of `serial`, with parameters of its own, on the same GPUs.
    TaskGraph serial_graph(GraphLimit limit = GraphLimit()) const;
    /// The parameters of collectives and GEMMs that are not cut: of the baseline, and beside `pairs`.
    ScheduleParams whole_params() const;

private:
    /// The graph of a list with `pairs`.
    TaskGraph operators(bool in_sequence, GraphLimit limit = GraphLimit()) const;
};

}  // namespace overlap
