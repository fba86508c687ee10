#include "models/attention_model.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "models/gemm_tiling.hpp"

namespace overlap {
namespace {

using gemm_detail::smooth_max;

constexpr double rows_of_block = 128;
constexpr double reference_dim = 128;
// FlashAttention-2 (arXiv 2307.08691), section 4.1: five products backward, two forward.
constexpr double backward_products = 2.5;

/// Sum over query blocks of their key blocks, and the most of one.
struct QueryBlocks {
    double queries = 0, pairs = 0, most = 0;
};

QueryBlocks blocks_of(const AttentionCall& call) {
    QueryBlocks blocks;
    const double n = std::ceil(call.tokens / rows_of_block);
    blocks.queries = n;
    // A window that begins inside a block touches one block more.
    const double seen = call.window > 0 && call.window < call.tokens
                            ? std::min(n, std::ceil(call.window / rows_of_block) + 1)
                            : n;
    blocks.most = seen;
    blocks.pairs = call.mask == AttentionMask::causal ? seen * (seen + 1) / 2 + (n - seen) * seen : n * seen;
    return blocks;
}
}  // namespace

std::span<const Field<PrefillParameters>> PrefillParameters::fields() {
    using P = PrefillParameters;
    // clang-format off
    static const std::array rows{
        field<&P::launch>("launch_us", "Start and end of the operator's kernels."),
        field<&P::block>("block_us", "128 queries times 128 keys on one unit: the part that does not grow with the head's dimension (softmax)."),
        field<&P::block_dim>("block_dim_us", "The part in proportion to the dimension, at 128 (the products)."),
        field<&P::tile>("tile_us", "Start and end of a tile of 128 queries of a head, with no block."),
        field<&P::tile_blocks>("tile_blocks", "The same in key blocks: loads of Q, the store, the pipeline's fill.").in({0.01, 100}),
        field<&P::short_block>("short_block", "Time of a block of a single row, as a share of a full block's.").in({0.001, 1}),
        field<&P::query>("query_GBps", "Rate of the bytes of Q through rotation, quantisation and attention."),
        field<&P::cache>("cache_GBps", "Rate of the bytes of K and V through rotation and the cache."),
        field<&P::overlap_exponent>("overlap_exponent", "p in (work^p + longest tile^p)^(1/p).").in({0.5, 100}),
        field<&P::sustained_slowdown>("sustained_slowdown", "Extra time, as a share, of a kernel much longer than sustained_time_us.").in({0.0, 2.0}),
        field<&P::sustained_time>("sustained_time_us", "Duration at which half of that slowdown is reached.").in({1e-3, 1e9}),
        field<&P::backward>("backward", "Time of a backward pass over that of its forward pass. Default 2.5, the ratio of their products.").in({1, 30}).optional(),
        field<&P::backward_unequal>("backward_unequal", "The same where keys and values differ in dimension. Default 2.5.").in({1, 30}).optional()};
    // clang-format on
    return rows;
}

std::span<const Field<PrefillParameters>> PrefillParameters::fixed_fields() {
    using P = PrefillParameters;
    static const std::array rows{
        field<&P::compute_units>("compute_units", "Compute units (CUs or SMs).").in({1, 100'000})};
    return rows;
}

std::span<const Field<DecodeParameters>> DecodeParameters::fields() {
    using P = DecodeParameters;
    constexpr Range keys{1, 1e7}, occupancy{0.01, 64};
    // clang-format off
    static const std::array rows{
        field<&P::launch>("launch_us", "Start and end of the operator's kernels."),
        field<&P::hbm>("hbm_GBps", "Achieved memory rate of keys and values."),
        field<&P::overlap_exponent>("overlap_exponent", "p in (busy^p + memory^p)^(1/p).").in({0.5, 100}),
        field<&P::least_part>("least_part", "Keys of the shortest part of a context.").in(keys),
        field<&P::tensor, &P::Kernel::tile>("tile_us", "Tensor-core kernel: a tile without keys."),
        field<&P::tensor, &P::Kernel::tile_group>("tile_group_us", "The same for each eight query heads of a key head."),
        field<&P::tensor, &P::Kernel::keys>("keys_us", "Tensor-core kernel: 1,000 keys of head_dim 128 on a busy unit."),
        field<&P::tensor, &P::Kernel::keys_group>("keys_group_us", "The same for each eight query heads of a key head."),
        field<&P::tensor, &P::Kernel::chain>("chain_us", "Tensor-core kernel: 1,000 keys one after another, with nothing else on the unit."),
        field<&P::tensor, &P::Kernel::merge>("merge_us", "Tensor-core kernel: sum of the parts."),
        field<&P::tensor, &P::Kernel::occupancy>("occupancy", "Tensor-core kernel: tiles and parts that a unit should have.").in(occupancy),
        field<&P::tensor, &P::Kernel::most_part>("most_part", "Tensor-core kernel: keys of the longest part.").in(keys),
        field<&P::vector, &P::Kernel::tile>("vector_tile_us", "Vector kernel: a query head without keys."),
        field<&P::vector, &P::Kernel::keys>("vector_keys_us", "Vector kernel: 1,000 keys of head_dim 128 on a busy unit."),
        field<&P::vector, &P::Kernel::chain>("vector_chain_us", "Vector kernel: 1,000 keys one after another."),
        field<&P::vector, &P::Kernel::merge>("vector_merge_us", "Vector kernel: sum of the parts."),
        field<&P::vector, &P::Kernel::occupancy>("vector_occupancy", "Vector kernel: tiles and parts that a unit should have.").in(occupancy),
        field<&P::vector, &P::Kernel::most_part>("vector_most_part", "Vector kernel: keys of the longest part.").in(keys)};
    // clang-format on
    return rows;
}

std::span<const Field<DecodeParameters>> DecodeParameters::fixed_fields() {
    using P = DecodeParameters;
    static const std::array rows{
        field<&P::compute_units>("compute_units", "Compute units (CUs or SMs).").in({1, 100'000}),
        field<&P::grouped_from>("grouped_from",
                                "Fewest query heads of a key head that the tensor-core kernel serves.")
            .in({1, 1024}),
        field<&P::grouped_to>("grouped_to",
                              "Most query heads of a key head that the tensor-core kernel serves.")
            .in({1, 1024})};
    return rows;
}

double attended_pairs(const AttentionCall& call) {
    const double tokens = call.tokens;
    const double window = call.window == 0 ? tokens : std::min<double>(tokens, call.window);
    if (call.kind == AttentionKind::decode) return window;
    if (call.mask == AttentionMask::none) return tokens * tokens;
    return window * (window + 1) / 2 + (tokens - window) * window;
}

Flops flops_of(const AttentionCall& call) {
    const double products = call.kind == AttentionKind::backward ? 2 * backward_products : 2;
    return Flops(2 * products * call.sequences * call.heads * attended_pairs(call) * call.mean_dim());
}

MemoryBoundWork attention_work(const AttentionCall& call) {
    const double value = call.value_dim == 0 ? call.head_dim : call.value_dim, sequences = call.sequences;
    const double queries = call.kind == AttentionKind::decode ? 1 : call.tokens;
    const double keys = call.kind == AttentionKind::decode ? attended_pairs(call) : call.tokens;
    const Bytes wide = element_size(output_type(call.dtype));
    MemoryBoundWork work;
    work.read = sequences * (queries * call.heads * call.head_dim * wide +
                             keys * call.kv_heads * (call.head_dim + value) * element_size(call.kv_dtype));
    work.written = sequences * queries * call.heads * value * wide;
    work.flops = flops_of(call);
    work.dtype = output_type(call.dtype);
    work.attention = call;
    return work;
}

Seconds estimate_prefill(const AttentionCall& call, const PrefillParameters& p) {
    const QueryBlocks blocks = blocks_of(call);
    const double full = std::min(call.tokens / rows_of_block, 1.0);
    const double block = (p.block + call.mean_dim() / reference_dim * p.block_dim).si() *
                         (p.short_block + (1 - p.short_block) * full);
    const double tiles = static_cast<double>(call.sequences) * call.heads;
    const double work = tiles * block * (blocks.pairs + p.tile_blocks * blocks.queries) / p.compute_units;
    const double chain = block * (blocks.most + p.tile_blocks);
    const double rows = static_cast<double>(call.sequences) * call.tokens * call.mean_dim() * 2;
    double time = smooth_max(work, chain, p.overlap_exponent) + tiles / p.compute_units * p.tile.si() +
                  rows * (call.heads / p.query.si() + call.kv_heads / p.cache.si());
    const bool unequal = call.value_dim != 0 && call.value_dim != call.head_dim;
    if (call.kind == AttentionKind::backward) time *= unequal ? p.backward_unequal : p.backward;
    time += p.launch.si();
    return Seconds(time * (1 + p.sustained_slowdown * time / (time + p.sustained_time.si())));
}

Seconds estimate_decode(const AttentionCall& call, const DecodeParameters& p, double clock) {
    const double group = std::ceil(static_cast<double>(call.heads) / call.kv_heads);
    const bool shared = group >= p.grouped_from && group <= p.grouped_to;
    const DecodeParameters::Kernel& kernel = shared ? p.tensor : p.vector;
    const double keys = attended_pairs(call), sequences = call.sequences;
    const double dim = call.mean_dim() / reference_dim, eights = std::ceil(group / 8);
    const double tiles = sequences * (shared ? call.kv_heads : call.heads);
    const double tile = (kernel.tile + eights * kernel.tile_group).si();
    const double key = (kernel.keys + eights * kernel.keys_group).si() * 1e-3 * dim;
    const double next = kernel.chain.si() * 1e-3 * dim;
    const double wanted = kernel.occupancy * p.compute_units / tiles;
    const double parts =
        std::max(std::clamp(wanted, 1.0, std::max(1.0, keys / p.least_part)), keys / kernel.most_part);
    const double busy = tiles * (tile + keys * key) / p.compute_units;
    const double memory = sequences * call.kv_heads * keys * 2 * call.mean_dim() *
                          element_size(call.kv_dtype).si() / p.hbm.si();
    const double merge = kernel.merge.si() * std::min(parts - 1, 1.0);
    return p.launch + Seconds(smooth_max(busy / clock, memory, p.overlap_exponent) +
                              (tile + next * keys / parts + merge) / clock);
}

}  // namespace overlap
