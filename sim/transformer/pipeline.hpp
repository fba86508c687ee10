#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/core/units.hpp"

namespace overlap {

/// In which order a stage of a pipeline works on micro-batches.
/// - 1f1b: after the micro-batches that fill the pipeline, one forward and one backward pass in turns (PipeDream-flush).
/// - interleaved: the same with several chunks of layers a GPU (arXiv 2104.04473, section 2.2).
/// - zero_bubble: 1f1b whose gradients of weights wait until a stage has nothing else to do (arXiv 2401.10241, ZB-H1).
enum class PipelineOrder { one_f_one_b, interleaved, zero_bubble };
inline const std::array<std::string, 3> pipeline_order_names{"1f1b", "interleaved", "zero_bubble"};

/// How the micro-batches of an iteration go through the GPUs.
struct Pipeline {
    int stages = 1;
    int chunks = 1;  ///< of layers on each stage: virtual stages; above 1 only where interleaved
    PipelineOrder order = PipelineOrder::one_f_one_b;
    std::int64_t micro_batches = 1;  ///< of an iteration, through each copy of the model

    /// Whether the iteration is one pass of all tokens through all layers.
    bool is_trivial() const { return stages == 1 && micro_batches == 1; }
    int virtual_stages() const { return stages * chunks; }
    /// Micro-batches whose activations the first stage holds at the same time, each of all of its chunks.
    double in_flight() const;
};

/// What a virtual stage takes for one micro-batch.
struct StageTimes {
    Seconds forward, backward;
    Seconds weights = {};  ///< part of `backward` that no other stage waits for: gradients of weights
    /// Sums of gradients and the optimiser, after the last micro-batch's passes, beside those of a stage's other chunks
    Seconds last = {};
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

/// Numbers of layers of the virtual stages. Where they don't divide evenly, the last and the first, which have the
/// output projection and the embedding, have one less, then those next to them.
std::vector<std::int64_t> layers_of_stages(const Pipeline& pipeline, std::int64_t layers);

}  // namespace overlap
