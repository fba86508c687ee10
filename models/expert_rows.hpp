#pragma once

#include <cstdint>
#include <vector>

namespace overlap {

/// How the tokens of an MoE layer go to its experts, and whose GPU is priced.
struct ExpertLoad {
    double tokens = 1;         ///< of all GPUs that share the experts
    std::int64_t choices = 1;  ///< experts that each token goes to (top k)
    std::int64_t experts = 1;  ///< of all these GPUs
    std::int64_t ranks = 1;    ///< GPUs, each with the same number of experts (EP)
    double imbalance = 0;      ///< exponent a of the power law; 0: balanced
    bool random = false;       ///< instead of balanced
    friend bool operator==(const ExpertLoad&, const ExpertLoad&) = default;
};

/// Rows of each expert of the busiest GPU. Their sum over all GPUs is tokens · choices, rounded.
///
/// Balanced: as even as whole rows allow, the remainder spread evenly over the experts. Random: each token goes to experts
/// of its own at random, so an expert's rows are binomial; they take the quantiles (i + ½)/experts. Power law: an expert's share is
/// proportional to x with density x^-a on [1, 0.8 · tokens], or on [0.01, 2] where there are fewer rows than experts
/// (the definition of the public MoE tables, github.com/ai-dynamo/aiconfigurator, which draws x at random). Here x takes
/// the quantiles (i + ½)/experts, so that the result is the same each time. Experts are dealt to GPUs at random, nine
/// times with fixed seeds; the median of the nine busiest GPUs is returned. Ignored: no expert gets a token twice.
std::vector<std::int64_t> expert_rows(const ExpertLoad& load);

/// Rows as kernel `_min_latency` (nvfp4) of the public tables routes them: DeepSeek V3's gate keeps 4 of 8 groups of
/// experts a token, those with the largest sums of their two best scores, whatever the model is. Choices outside of
/// them go to the lowest experts inside: with a balanced distribution half of all rows go to the first experts, which
/// are those of the GPU that is measured. Source: github.com/ai-dynamo/aiconfigurator,
/// collector/trtllm/collect_moe.py (n_group, topk_group) and collector/helper.py (balanced_logits,
/// power_law_logits_v3), read 2026-11-25.
std::vector<std::int64_t> group_limited_rows(const ExpertLoad& load);

}  // namespace overlap
