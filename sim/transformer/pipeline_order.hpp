#pragma once

#include <cstdint>
#include <vector>

#include "sim/transformer/pipeline.hpp"

namespace overlap {

/// - backward: gradients of inputs and of weights.
/// - inputs, weights: one of them.
/// - together: a forward pass beside a backward pass of the other direction; both begin and end at the same time.
enum class Pass { forward, backward, inputs, weights, together };

struct PipelineStep {
    Pass pass;
    int chunk;  ///< dualpipe: direction
    std::int64_t micro_batch;
    std::int64_t backward_of = 0;  ///< together: the micro-batch of the backward pass
};

/// What a GPU stage does, one step after another.
std::vector<PipelineStep> steps_of(const Pipeline& pipeline, int stage);
/// Of the first stage's steps, how many run passes of two micro-batches together.
std::int64_t passes_together(const Pipeline& pipeline);

}  // namespace overlap
