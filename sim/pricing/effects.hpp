#pragma once

#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "models/cost_model_registry.hpp"
#include "models/costs.hpp"
#include "sim/workload/workload.hpp"

namespace overlap {

/// Effects that can be switched off, for the losses and for `--without`.
struct Effects {
    bool host = true;           ///< time of the hosts' calls
    bool contention = true;     ///< compute units, HBM and caches shared by computation and communication
    bool launch = true;         ///< launch, command, start, completion and dependency latencies
    bool packing = true;        ///< local copies around fused GEMMs
    bool decomposition = true;  ///< a part of a GEMM costing more than its share of the whole
    /// GEMMs, memory-bound operators and packing: without them only transfers remain
    bool computation = true;
};

/// Multiplies the time of the body by `share`.
void scale(Cost& cost, double share);
/// Whether Effects::computation switches off this kind; all other kinds are transfers and reductions.
bool is_computation(TaskKind kind);
/// A transfer, a reduction or a library's collective.
bool is_communication(TaskKind kind);

/// Names that `--without` takes, in the order in which losses are computed.
inline const std::array<std::string, 5> effect_names{"host", "contention", "launch", "packing",
                                                     "decomposition"};
/// Throws UserError for a name that is none of effect_names.
Effects without(std::span<const std::string> names);

/// Tasks that cost the same under any effects: on one stream, and alike in all that cost models read.
struct TaskClasses {
    /// `ends_apart`: the first and the last task of each stream have classes of their own.
    explicit TaskClasses(const TaskGraph& graph, bool ends_apart = false);

    std::vector<std::uint32_t> of;  ///< by task
    std::vector<TaskId> first;      ///< by class: its first task
};

/// Costs of a graph's tasks under any effects; caches what does not depend on them. Thread-safe. Its
/// arguments must outlive it. Throws UserError if a task is longer than the simulated time range.
class Pricer {
public:
    /// `release`: how much later than a GPU's first stream its other streams begin (Host::release); above 0 also a
    /// run's end is an event.
    Pricer(const TaskGraph& graph, const Workload& workload, const Machine& machine, const CostModels& models,
           Seconds release = {});

    /// The cost of every task with these effects. GEMMs run at the speed of the machine's slowest GPU, if
    /// GPUs of its kind differ (models/gpu_spread.hpp). Without `decomposition`, a part of a pair's GEMM, also
    /// of a pair in a list, costs at most its share of the whole: cost of the whole GEMM on all compute units × the
    /// part's share of the FLOPs.
    Costs price(const Effects& effects) const;
    const TaskClasses& classes() const { return classes_; }
    /// Whether a run without packing, host or decomposition can differ from the full run.
    bool has_packing() const { return has_packing_; }
    bool has_host() const { return has_host_; }
    bool has_decomposition() const { return !lossless_.empty(); }

private:
    const TaskGraph& graph_;
    const Machine& machine_;
    Seconds release_;
    TaskClasses classes_;
    Costs alone_;                           ///< without interference
    std::map<std::size_t, Cost> lossless_;  ///< by class: of parts of GEMMs, where decomposition costs time
    bool has_packing_ = false, has_host_ = false;
};

/// price() for one set of effects, without caching for others.
Costs price(const TaskGraph& graph, const Workload& workload, const Machine& machine,
            const CostModels& models, const Effects& effects, Seconds release = {});

}  // namespace overlap
