#pragma once

#include <span>
#include <string>
#include <vector>

#include "models/cost_model_registry.hpp"
#include "sim/workload/workload.hpp"

namespace overlap {

/// What can be switched off, for losses and for `--without`.
struct Effects {
    bool contention = true;     ///< compute units, HBM and caches shared by computation and communication
    bool launch = true;         ///< launch, command, start, completion and dependency latencies
    bool packing = true;        ///< local copies around fused GEMMs
    bool decomposition = true;  ///< a part of a GEMM costing more than its share of the whole
    bool computation = true;    ///< GEMMs, memory-bound operators and packing: off leaves the transfers alone
};

/// What Effects::computation switches off; the rest are transfers and reductions.
bool is_computation(TaskKind kind);

/// Names that `--without` takes, in the order in which losses are taken apart.
inline const std::array<std::string, 4> effect_names{"contention", "launch", "packing", "decomposition"};
/// Throws UserError for a name that is none of effect_names.
Effects without(std::span<const std::string> names);

/// Costs of the tasks of a graph under any effects; what depends on none of them is worked out once.
/// Thread-safe. What it is made of must outlive it. Throws UserError where a task takes longer than simulated
/// time lasts.
class Pricer {
public:
    Pricer(const TaskGraph& graph, const Workload& workload, const Machine& machine,
           const CostModels& models);

    /// The cost of every task with these effects. GEMMs take as long as on the slowest of the machine's GPUs,
    /// where these are known to differ (models/gpu_spread.hpp). Without decomposition, a part of the pair's
    /// GEMM that takes longer than its share of the whole (the cost of the whole GEMM on all compute units
    /// times the part's share of the FLOPs) takes just that.
    std::vector<Cost> price(const Effects& effects) const;
    /// Whether a run without packing, or without decomposition, could differ from one with it.
    bool has_packing() const { return has_packing_; }
    bool has_decomposition() const { return !wholes_.empty(); }

private:
    const TaskGraph& graph_;
    const Workload& workload_;
    const Machine& machine_;
    std::vector<Cost> alone_;   ///< by task, without interference
    std::vector<Cost> wholes_;  ///< by GPU: the pair's whole GEMM; empty where there is none
    bool has_packing_ = false;
};

/// The same for one set of effects, without what a second set would need.
std::vector<Cost> price(const TaskGraph& graph, const Workload& workload, const Machine& machine,
                        const CostModels& models, const Effects& effects);

}  // namespace overlap
