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

/// Names that `--without` takes, in the order in which losses are taken apart.
inline const std::array<std::string, 4> effect_names{"contention", "launch", "packing", "decomposition"};
/// Throws UserError for a name that is none of effect_names.
Effects without(std::span<const std::string> names);

/// The cost of every task of a graph with these effects. GEMMs take as long as on the slowest of the
/// machine's GPUs, where these are known to differ (models/gpu_spread.hpp). Without decomposition, a part of
/// the pair's GEMM costs the whole GEMM times its share of the FLOPs.
std::vector<Cost> price(const TaskGraph& graph, const Workload& workload, const Machine& machine,
                        const CostModels& models, const Effects& effects);

}  // namespace overlap
