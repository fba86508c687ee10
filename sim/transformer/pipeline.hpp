#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace overlap {

/// In which order a stage of a pipeline works on micro-batches.
/// - 1f1b: after the micro-batches that fill the pipeline, one forward and one backward pass in turns (PipeDream-flush).
/// - interleaved: the same with several chunks of layers a GPU (arXiv 2104.04473, section 2.2).
/// - zero_bubble: 1f1b whose gradients of weights wait until a stage has nothing else to do (arXiv 2401.10241, ZB-H1).
/// - dualpipe: half of the micro-batches begin at either end, so that each GPU has two stages' weights; a forward pass of
///   one direction runs beside a backward pass of the other (arXiv 2412.19437, section 3.2.1).
enum class PipelineOrder { one_f_one_b, interleaved, zero_bubble, dualpipe };
inline const std::array<std::string, 4> pipeline_order_names{"1f1b", "interleaved", "zero_bubble",
                                                             "dualpipe"};

/// How the micro-batches of an iteration go through the GPUs.
struct Pipeline {
    int stages = 1;
    int chunks = 1;  ///< of layers on each stage: virtual stages; above 1 only where interleaved
    PipelineOrder order = PipelineOrder::one_f_one_b;
    std::int64_t micro_batches = 1;                ///< of an iteration, through each copy of the model
    std::optional<std::int64_t> last_layers = {};  ///< of the last virtual stage; none: evenly

    /// Whether the iteration is one pass of all tokens through all layers.
    bool is_trivial() const { return stages == 1 && micro_batches == 1; }
    int virtual_stages() const { return stages * chunks; }
    /// In which micro-batches go through the stages, each with weights of its own.
    int directions() const { return order == PipelineOrder::dualpipe ? 2 : 1; }
    /// Micro-batches whose activations the first stage holds at the same time, each of all of its chunks.
    double in_flight() const;
};

/// Numbers of layers of the virtual stages. Where they don't divide evenly, the last and the first, which have the
/// output projection and the embedding, have one less, then those next to them. With Pipeline::last_layers the last one
/// has so many, and the `behind` last ones of `layers`; the others share the rest.
std::vector<std::int64_t> layers_of_stages(const Pipeline& pipeline, std::int64_t layers,
                                           std::int64_t behind = 0);

}  // namespace overlap
