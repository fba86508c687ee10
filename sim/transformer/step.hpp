#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "sim/core/dtype.hpp"
#include "sim/transformer/model.hpp"

namespace overlap {

/// What a step does with its tokens.
/// - forward: one pass over whole sequences, with the output projection of every token.
/// - training: forward, backward, gradients summed over data-parallel GPUs, Adam.
/// - prefill: forward, but only the last token of a sequence has an output projection.
/// - decode: one token of each of many sequences, whose keys and values are in memory.
enum class Phase { forward, training, prefill, decode };
inline const std::array<std::string, 4> phase_names{"forward", "training", "prefill", "decode"};

/// How a step is spread over the GPUs of a topology. Collectives go over all of them, so that each degree is 1 or their
/// number, and tensor and data parallelism multiply to it.
struct Parallelism {
    int gpus = 1;
    int tensor = 1, experts = 1, data = 1;
    bool sequence = false;  ///< norms work on a share of the tokens, between all-gathers and reduce-scatters
};

struct StepShape {
    Phase phase = Phase::forward;
    std::int64_t tokens = 4096;    ///< of all GPUs together
    std::int64_t sequence = 4096;  ///< tokens of a sequence; decode: tokens of its context
    DType dtype = DType::bf16;
    Parallelism spread;
};

/// Throws UserError that begins with `where` if the model can't be spread like that.
void require_possible(const Model& model, const StepShape& step, const std::string& where);

/// Tokens of the GEMMs of a GPU, and of its norms.
std::int64_t rows_of(const StepShape& step);
std::int64_t norm_rows_of(const StepShape& step);
/// Whether all-gathers and reduce-scatters stand for all-reduces.
inline bool shards_sequence(const StepShape& step) {
    return step.spread.sequence && step.spread.tensor > 1;
}

}  // namespace overlap
