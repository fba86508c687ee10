#pragma once

#include "sim/transformer/operators.hpp"

namespace overlap {

/// Bytes of a weight that Adam keeps and changes: the weight in fp32, and two moments of its gradient.
constexpr Bytes optimiser_states(const StepShape& step) {
    return element_size(DType::fp32) + 2.0 * element_size(step.training.moments);
}

/// Weights of a list that one GPU multiplies with. The GPUs of a group hold the same ones, or with
/// Parallelism::sharded each a share of them.
struct HeldWeights {
    std::string prefix;  ///< of the names of operators
    double count = 0;
    int copies = 1;
    RankGroup group;
};

/// Whose weights are gathered and gradients summed while a list computes.
enum class WeightsOf {
    neighbour,  ///< of the next layer and of the one before, which are like the list, a layer
    itself      ///< of the list itself, before and after it computes; for what is around the layers
};

/// The operators of a forward pass with those that its weights need. In training these are gradients, their sums over
/// the GPUs of a group, and Adam. Sharded weights are gathered before they are used, in training once more before the
/// backward pass, with the copies that PyTorch's fully_shard makes around these collectives. Where only the optimiser is
/// shared (Zero), gradients are scattered, and updated weights gathered beside the next step's first forward pass
/// (Megatron-Core's --overlap-param-gather); with Zero::gradients they are scattered in each micro-batch. With
/// StepShape::two_batches `forward` is that of half a batch, and the list has it twice; backward passes begin after both.
std::vector<Operator> with_weights(const StepShape& step, std::vector<Operator> forward,
                                   const std::vector<HeldWeights>& weights, WeightsOf whose);

}  // namespace overlap
