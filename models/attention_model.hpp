#pragma once

#include <span>

#include "sim/core/fields.hpp"
#include "sim/core/task_graph.hpp"

namespace overlap {

/// Parameters of a device's prefill attention for one pair of number formats (products, cache).
struct PrefillParameters {
    double compute_units = 1;
    Seconds launch, block, block_dim, tile;
    double tile_blocks = 2, short_block = 0.5;
    BytesPerSecond query, cache;
    double overlap_exponent = 1.5;
    double sustained_slowdown = 0;
    Seconds sustained_time;
    /// FlashAttention-2 (arXiv 2307.08691), section 4.1: five products backward, two forward.
    double backward = 2.5, backward_unequal = 2.5;

    static std::span<const Field<PrefillParameters>> fields();
    static std::span<const Field<PrefillParameters>> fixed_fields();
    friend bool operator==(const PrefillParameters&, const PrefillParameters&) = default;
};

/// Parameters of a device's decode attention for one number format of the cache. Two kernels serve: one on tensor
/// cores, where `grouped_from` to `grouped_to` query heads share a key head; one on vector units for all others.
struct DecodeParameters {
    struct Kernel {
        Seconds tile = {}, keys = {}, chain = {}, merge = {};
        Seconds tile_group = {}, keys_group = {};  ///< of tensor cores alone
        double occupancy = 1.5, most_part = 1200;
        friend bool operator==(const Kernel&, const Kernel&) = default;
    };

    double compute_units = 1, grouped_from = 2, grouped_to = 32;
    Seconds launch;
    BytesPerSecond hbm;
    double overlap_exponent = 3;
    double least_part = 200;
    Kernel tensor, vector{.most_part = 14000};

    static std::span<const Field<DecodeParameters>> fields();
    static std::span<const Field<DecodeParameters>> fixed_fields();
    friend bool operator==(const DecodeParameters&, const DecodeParameters&) = default;
};

/// Kernel time of a prefill: query blocks of 128 rows are tiles, each with its key blocks of 128 rows.
///   block  = block time + block_dim time · head_dim/128, times short_block … 1 where the sequence is shorter than 128
///   work   = sequences · heads · Σ over query blocks of (key blocks + tile_blocks) · block / units
///   chain  = the longest tile
///   time   = (work^p + chain^p)^(1/p) + tiles · tile time / units + bytes of Q and of K, V / their rates + launch
///   time  *= 1 + sustained_slowdown · t/(t + sustained_time): the power cap
/// Backward: all but the launch times `backward`, or `backward_unequal` where keys and values differ in dimension.
/// The operator that the tables timed also rotates, writes the cache and quantises; the bytes stand for that.
Seconds estimate_prefill(const AttentionCall& call, const PrefillParameters& parameters);

/// Kernel time of a decode. A tile is one sequence and one key head (vector kernel: one query head), cut into parts of
/// the context so that all units work (split KV), none longer than most_part keys.
///   busy   = tiles · (tile time + context · time a key) / units
///   chain  = tile time + keys of a part · time a key in sequence
///   memory = bytes of K and V / rate
///   time   = (busy^p + memory^p)^(1/p) + chain + merge (where there are parts) + launch
/// Times of a key are for head_dim 128 and proportional to it. Query heads that share a key head are padded to eights.
/// `clock`: of the units, as a fraction of a cool GPU's; memory and launch don't follow it.
Seconds estimate_decode(const AttentionCall& call, const DecodeParameters& parameters, double clock = 1);

/// Pairs of a query and a key that one head of one sequence computes; FLOPs of the call. No FLOP is counted for
/// softmax.
double attended_pairs(const AttentionCall& call);
Flops flops_of(const AttentionCall& call);
/// A call as a kernel: Q, K and V are read once, the result is written once, in 16-bit numbers where they are not in
/// the cache.
MemoryBoundWork attention_work(const AttentionCall& call);

}  // namespace overlap
