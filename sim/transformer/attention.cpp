#include <algorithm>

#include "sim/transformer/operators.hpp"

namespace overlap {
namespace {

/// Pairs of tokens that one sequence of `tokens` attends to.
double attended(const AttentionShape& attention, double tokens) {
    const double window =
        attention.window == 0 ? tokens : std::min<double>(tokens, static_cast<double>(attention.window));
    if (!attention.causal) return tokens * tokens;
    return window * (window + 1) / 2 + (tokens - window) * window;
}

/// Heads of a GPU. Key and value heads that are fewer than the GPUs are repeated.
struct Heads {
    std::int64_t queries, keys;
    Heads(const AttentionShape& attention, int tensor)
        : queries(attention.heads / tensor), keys(std::max<std::int64_t>(attention.kv_heads / tensor, 1)) {}
};

/// The heads of a GPU as the kernel sees them; sequences and tokens are the caller's.
AttentionCall call_of(const AttentionShape& a, const StepShape& step, const Heads& heads,
                      AttentionKind kind) {
    AttentionCall call;
    call.kind = kind;
    call.window = static_cast<std::int32_t>(a.window);
    call.heads = static_cast<std::int16_t>(heads.queries);
    call.kv_heads = static_cast<std::int16_t>(a.latent() ? heads.queries : heads.keys);
    call.head_dim = static_cast<std::int16_t>(a.head_dim);
    if (a.value_dim != a.head_dim) call.value_dim = static_cast<std::int16_t>(a.value_dim);
    call.mask = a.causal ? AttentionMask::causal : AttentionMask::none;
    call.dtype = call.kv_dtype = output_type(step.dtype);
    return call;
}

/// One fused kernel for all sequences: QKᵀ and PV of the pairs that are attended to; Q, K and V read once, the result
/// written once. Softmax is not counted.
StreamingWork whole_sequences(const AttentionShape& a, const StepShape& step, const Heads& heads,
                              const OperatorList& list) {
    const std::int64_t rows = rows_of(step), rest = rows % step.sequence;
    const double pairs =
        static_cast<double>(rows / step.sequence) * attended(a, static_cast<double>(step.sequence)) +
        attended(a, static_cast<double>(rest));
    const std::int64_t keys = a.latent() ? heads.queries : heads.keys;
    StreamingWork work = list.streams(rows * (heads.queries * a.head_dim + keys * (a.head_dim + a.value_dim)),
                                      rows * heads.queries * a.value_dim);
    work.flops = Flops(2 * pairs * static_cast<double>(heads.queries * (a.head_dim + a.value_dim)));
    work.dtype = output_type(step.dtype);
    work.attention = call_of(a, step, heads, AttentionKind::prefill);
    work.attention.sequences = static_cast<std::int32_t>(share(rows, step.sequence));
    work.attention.tokens = static_cast<std::int32_t>(std::min(rows, step.sequence));
    return work;
}

/// One token of each sequence and the keys and values of its context. Latent attention reads the latents, which all
/// heads share, and multiplies in their space.
StreamingWork one_token(const AttentionShape& a, const StepShape& step, const Heads& heads,
                        const OperatorList& list) {
    const std::int64_t rows = rows_of(step);
    const std::int64_t context = a.window == 0 ? step.sequence : std::min(step.sequence, a.window);
    const std::int64_t key = a.latent() ? a.kv_rank + a.rope_dim : a.head_dim,
                       value = a.latent() ? a.kv_rank : a.value_dim;
    const std::int64_t kept = a.latent() ? key : heads.keys * (key + value);
    StreamingWork work =
        list.streams(rows * (context * kept + heads.queries * key), rows * heads.queries * value);
    work.flops =
        Flops(2.0 * static_cast<double>(rows * context) * static_cast<double>(heads.queries * (key + value)));
    work.dtype = output_type(step.dtype);
    if (a.latent()) return work;  // no table has a kernel that shares latents: a roofline
    work.attention = call_of(a, step, heads, AttentionKind::decode);
    work.attention.sequences = static_cast<std::int32_t>(rows);
    work.attention.tokens = static_cast<std::int32_t>(step.sequence);
    return work;
}

/// Queries, keys and values through their latents. The projections into the latents are on every GPU.
void add_latent_projections(const Model& model, const StepShape& step, const Heads& heads, std::size_t input,
                            OperatorList& list) {
    const AttentionShape& a = model.attention;
    const std::int64_t rows = rows_of(step), nope = a.head_dim - a.rope_dim;
    const std::int64_t queries = heads.queries * a.head_dim;
    const std::int64_t direct = a.q_rank == 0 ? queries : a.q_rank;
    list.add("qkv_latent", list.gemm(rows, direct + a.kv_rank + a.rope_dim, model.hidden), {input});
    list.add("latent_norm", list.streams(rows * (a.q_rank + a.kv_rank), rows * (a.q_rank + a.kv_rank)));
    if (a.q_rank > 0) list.add("queries", list.gemm(rows, queries, a.q_rank));
    if (step.phase ==
        Phase::decode)  // queries are projected into the latent space, instead of the context out of it
        list.add("absorb_keys", list.gemm(rows, a.kv_rank, nope, heads.queries));
    else
        list.add("keys_values", list.gemm(rows, heads.queries * (nope + a.value_dim), a.kv_rank));
    const std::int64_t rotated = rows * (heads.queries + 1) * a.rope_dim;
    list.add("rotary", list.streams(rotated, rotated));
}

}  // namespace

void add_attention(const Model& model, const StepShape& step, std::size_t input, OperatorList& list) {
    const AttentionShape& a = model.attention;
    const Heads heads(a, step.spread.tensor);
    const std::int64_t rows = rows_of(step);
    if (a.latent()) {
        add_latent_projections(model, step, heads, input, list);
    } else {
        list.add("qkv", list.gemm(rows, (heads.queries + 2 * heads.keys) * a.head_dim, model.hidden),
                 {input});
        const std::int64_t rotated = rows * (heads.queries + heads.keys) * a.head_dim;
        if (a.rotary) list.add("rotary", list.streams(rotated, rotated));
    }
    list.add("attention", step.phase == Phase::decode ? one_token(a, step, heads, list)
                                                      : whole_sequences(a, step, heads, list));
    if (a.latent() && step.phase == Phase::decode)
        list.add("absorb_values", list.gemm(rows, a.value_dim, a.kv_rank, heads.queries));
    list.add("attention_out", list.gemm(rows, model.hidden, heads.queries * a.value_dim));
}

}  // namespace overlap
