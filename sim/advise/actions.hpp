#pragma once

#include <string>
#include <vector>

#include "models/heuristic/overlap_features.hpp"
#include "sim/advise/candidates.hpp"

namespace overlap {

/// Action of a leaf of the heuristic: a plan with a rule for its chunks, or the
/// plan with the smallest estimate.
struct Action {
    /// Index in overlap_advice::plans(); plan_count: the plan with the smallest estimate
    std::size_t plan = 0;
    overlap_advice::ChunkRule rule = overlap_advice::uncut;
    double x = 0;

    /// "hetero_fused_1d by dma, 4 chunks", "least estimate".
    std::string text() const;
};

/// Every plan with every rule, in a fixed order. `own_kernels`: includes flag_gated, which needs kernels that
/// poll flags; all other plans use library GEMMs and copies.
std::vector<Action> all_actions(bool own_kernels);

/// The candidate that a heuristic's advice names.
Candidate candidate_of(const overlap_advice::Advice& advice);

}  // namespace overlap
