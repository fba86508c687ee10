#pragma once

#include <vector>

#include "sim/transformer/step.hpp"
#include "sim/workload/workload.hpp"

namespace overlap {

/// Whether a layer runs as two half batches.
inline bool in_two_batches(const StepShape& step, const LayerShape& layer) {
    return step.two_batches && step.spread.experts > 1 && layer.of_experts();
}
/// The operators of one layer of a kind on each GPU. Training: forward and backward.
std::vector<Operator> layer_operators(const Model& model, const StepShape& step, const LayerKind& kind);
/// Embedding, last norm and output projection.
std::vector<Operator> head_operators(const Model& model, const StepShape& step);
/// What a layer that predicts further tokens has around it: the same, and the projection of the layer's input.
std::vector<Operator> predictor_operators(const Model& model, const StepShape& step);

/// Bytes that a GPU of a stage holds all the time: weights (in training with gradients and optimiser states), in decode
/// keys and values of its sequences. Activations and buffers come on top.
Bytes least_memory(const Model& model, const StepShape& step);
/// Gradients that a GPU has of a stage's layers, and of what is around all layers.
struct StageGradients {
    Bytes layers, head;
};
StageGradients gradients_of_stage(const Model& model, const StepShape& step);
/// What the first stage keeps in training for the backward passes of all micro-batches that are under way: of each
/// layer the results of its kernels, or with Recompute::full its input.
Bytes kept_activations(const Model& model, const StepShape& step);

/// FLOPs of a list on one GPU.
Flops flops_of(const std::vector<Operator>& operators);
/// FLOPs of the model in a step: those of a single GPU that does all of it, without what parallelism repeats.
Flops model_flops(const Model& model, const StepShape& step);

}  // namespace overlap
