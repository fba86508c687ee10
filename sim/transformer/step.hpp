#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "sim/core/operators.hpp"
#include "sim/transformer/model.hpp"
#include "sim/transformer/pipeline.hpp"

namespace overlap {

/// What a step does with its tokens.
/// - forward: one pass over whole sequences, with the output projection of every token.
/// - training: forward, backward, gradients summed over data-parallel GPUs, Adam.
/// - prefill: forward, but only the last token of a sequence has an output projection.
/// - decode: one token of each of many sequences, whose keys and values are in memory.
enum class Phase { forward, training, prefill, decode };
inline const std::array<std::string, 4> phase_names{"forward", "training", "prefill", "decode"};

/// What a layer computes again before its backward pass, instead of keeping it (arXiv 2205.05198).
/// - selective: attention between its two projections.
/// - full: all, from the layer's input.
/// - mla_up_proj: latent attention's projections out of the latent vectors, and rotation (Megatron-Core's
///   --recompute-modules mla_up_proj).
enum class Recompute { none, selective, full, mla_up_proj };
inline const std::array<std::string, 4> recompute_names{"none", "selective", "full", "mla_up_proj"};

/// How GPUs that share sequences get the keys and values that they attend to (Megatron-Core's cp_comm_type).
/// - all_gather: all of them, before attention.
/// - p2p: those of one GPU after another, around a ring, beside attention to the ones before (arXiv 2310.01889).
/// - a2a: all of a part of the heads, with their queries (DeepSpeed Ulysses, arXiv 2309.14509).
enum class ContextExchange { all_gather, p2p, a2a };
inline const std::array<std::string, 3> context_exchange_names{"all_gather", "p2p", "a2a"};

/// Who holds what of gradients and optimiser states in a data-parallel group (arXiv 1910.02054): each GPU all of it, a
/// share of the optimiser's states, also of the gradients. Of weights: Parallelism::sharded.
enum class Zero { none, states, gradients };

/// How a step is spread over the GPUs of a topology, with ranks in Megatron-LM's order: GPUs of a tensor-parallel
/// group are neighbours, those of a data-parallel group are `tensor` ranks apart, stages of a pipeline are blocks of
/// neighbours. Experts are spread over `experts` neighbours, whole ones on each; where `experts` is 1 they are cut like
/// all other weights. `tensor` times `data` times `stages` is `gpus`; `experts` divides the GPUs of a stage.
struct Parallelism {
    int gpus = 1;
    int tensor = 1, experts = 1;
    int data = 1;           ///< GPUs that hold the same weights, in a stage and beside tensor parallelism
    bool sequence = false;  ///< norms work on a share of the tokens, between all-gathers and reduce-scatters
    bool sharded =
        false;        ///< the GPUs of a data-parallel group each hold a share of its weights (FSDP, ZeRO-3)
    int stages = 1;   ///< of a pipeline
    int context = 1;  ///< neighbours of a data-parallel group that each have a part of every sequence
    ContextExchange exchange = ContextExchange::all_gather;
    Zero zero = Zero::none;

    RankGroup tensor_group() const { return group(tensor, 1); }
    RankGroup experts_group() const { return group(experts, 1); }
    RankGroup data_group() const { return group(data, tensor); }
    RankGroup context_group() const { return group(context, tensor); }
    /// GPUs that hold the same experts, where experts are spread.
    int expert_copies() const { return gpus / stages / experts; }
    RankGroup expert_copies_group() const { return group(expert_copies(), experts); }

private:
    bool all_or_one(int degree) const { return degree == 1 || degree == gpus; }
    /// A group of all GPUs is written as no group, so that the list runs on a topology of any size.
    RankGroup group(int size, int stride) const {
        if (all_or_one(tensor) && all_or_one(experts) && all_or_one(data)) return {};
        return {size, stride};
    }
};

/// What only training has.
/// Scales of a tensor that is cast to fp8: of earlier steps, or by its own largest magnitude, which a kernel looks for
/// before the cast.
enum class Fp8Recipe { delayed, tensorwise };
inline constexpr std::array<std::string_view, 2> fp8_recipe_names{"delayed", "tensorwise"};

struct Training {
    Recompute recompute = Recompute::none;
    /// Of both moments that Adam keeps of a gradient: fp32, or bf16 (Megatron-Core's --exp-avg-dtype, --exp-avg-sq-dtype)
    DType moments = DType::fp32;
    /// Of casts to fp8: Megatron-Core's --fp8-recipe. fp4 always needs the largest magnitude, for the scale of its scales.
    Fp8Recipe recipe = Fp8Recipe::delayed;
    bool gemms_cast =
        false;  ///< the GEMMs' times hold the cast of A, so that only its transpose is written beside them
    bool accumulates = false;  ///< gradients are kept for the next micro-batch: no sums of them, no optimiser
    bool two_micro_batches = false;  ///< backward passes are of another micro-batch than forward passes
};

/// What only decode has, besides the next token of each sequence. StepShape::tokens counts these tokens, too.
struct Decoding {
    std::int64_t draft =
        0;                ///< tokens that a sequence has verified beside its next one (speculative decoding)
    double accepted = 1;  ///< tokens that a sequence gains in a step, on average: 1 to draft + 1
    std::int64_t chunk = 0;  ///< tokens of a prompt that a GPU processes in the same step
    bool fused_norms =
        false;  ///< all-reduces add the residual and normalise its sum, see Server::fused_norms
};

/// Most tokens of a GPU with which DeepEP's low-latency kernels were measured.
inline constexpr std::int64_t most_low_latency_tokens = 1024;
/// SMs with which DeepEP's normal kernels were measured.
inline constexpr std::array<std::int16_t, 6> measured_deepep_sms{4, 8, 12, 16, 20, 24};

/// A step on all GPUs, apart from the model.
struct StepShape {
    Phase phase = Phase::forward;
    std::int64_t tokens = 4096;    ///< of all GPUs together
    std::int64_t sequence = 4096;  ///< tokens of a sequence; decode: tokens of its context
    DType dtype = DType::bf16;
    Parallelism spread = {};
    /// Exponent of the power law by which tokens go to experts; 0: evenly; none: each token's at random.
    std::optional<double> imbalance = {};
    WeightFormat stored = {};  ///< of the layers' weights in memory, and of caches, in inference
    Training training = {};
    Pipeline pipeline = {};  ///< `tokens` are those of one micro-batch of each copy of the model
    /// Layers whose experts are sent tokens run as two half batches, each beside the all-to-alls of the other (SGLang's
    /// --enable-two-batch-overlap)
    bool two_batches = false;
    /// All-to-alls of experts by DeepEP's normal kernels on so many SMs, or its low-latency kernels (0); none: as
    /// schedules have them
    std::optional<std::int16_t> deepep_sms = {};
    bool best_sms = false;  ///< those of measured_deepep_sms with which the step is fastest
    Decoding decoding = {};
    bool rotates_apart = true;  ///< queries and keys are rotated by a kernel of its own, not by attention's
};

/// Whether each all-reduce is replaced by a reduce-scatter and an all-gather.
inline bool shards_sequence(const StepShape& step) {
    return step.spread.sequence && step.spread.tensor > 1;
}
/// Tokens of the GEMMs of a GPU.
inline std::int64_t rows_of(const StepShape& step) {
    return step.tokens / step.spread.data;
}
/// Sequences of a decode step, on one GPU.
inline std::int64_t sequences_of(const StepShape& step) {
    return (rows_of(step) - step.decoding.chunk) / (1 + step.decoding.draft);
}
/// Tokens of all micro-batches.
inline std::int64_t all_tokens(const StepShape& step) {
    return step.tokens * step.pipeline.micro_batches;
}
/// By how many tokens sequences become longer in a step; all that are processed, if it isn't decode.
inline double gained_tokens(const StepShape& step) {
    return step.phase == Phase::decode
               ? step.decoding.accepted * static_cast<double>(sequences_of(step) * step.spread.data)
               : static_cast<double>(all_tokens(step));
}
/// Tokens of the norms of a GPU.
inline std::int64_t norm_rows_of(const StepShape& step) {
    return shards_sequence(step) ? rows_of(step) / step.spread.tensor : rows_of(step);
}

}  // namespace overlap
