#pragma once

#include <span>

#include "sim/core/units.hpp"
#include "sim/transformer/pipeline.hpp"

namespace overlap {

/// What a virtual stage takes for one micro-batch.
struct StageTimes {
    Seconds forward, backward;
    Seconds weights = {};  ///< part of `backward` that no other stage waits for: gradients of weights
    /// Sums of gradients and the optimiser, after the last micro-batch's passes, beside those of a stage's other chunks
    Seconds last = {};
    /// By which a forward and a backward pass of two micro-batches take less together than one after the other
    Seconds gain = {};
};

struct PipelineTimes {
    Seconds makespan;
    Seconds busy;  ///< of the stage that works longest
};

/// Share of an iteration in which the busiest stage waits.
inline double bubble(const PipelineTimes& times) {
    return 1 - times.busy / times.makespan;
}

/// `stages`: of all virtual stages, in the order of the layers; virtual stage q is on GPU stage q mod Pipeline::stages.
/// `send`: from the end of a pass until the next stage has its result. Stages do not wait for what they send.
PipelineTimes times_of(const Pipeline& pipeline, std::span<const StageTimes> stages, Seconds send);

}  // namespace overlap
