#pragma once

#include <string>
#include <vector>

#include "models/heuristic/overlap_features.hpp"
#include "sim/advise/candidates.hpp"

namespace overlap {

/// What a leaf of the heuristic says: a plan and a rule for its chunks, or the plan with the least estimate.
struct Action {
    std::size_t plan = 0;  ///< of overlap_advice::plans(); plan_count: the one with the least estimate
    overlap_advice::ChunkRule rule = overlap_advice::uncut;
    double x = 0;

    /// "hetero_fused_1d by dma, 4 chunks", "least estimate".
    std::string text() const;
};

/// Every plan with every rule, in a fixed order. `own_kernels`: flag_gated, too; the others are made of
/// library GEMMs and copies.
std::vector<Action> all_actions(bool own_kernels);

/// The candidate that a heuristic's advice names.
Candidate candidate_of(const overlap_advice::Advice& advice);

}  // namespace overlap
