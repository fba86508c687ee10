#include <algorithm>
#include <cmath>

#include "sim/transformer/operators.hpp"

namespace overlap {
namespace {

/// Tokens that a token attends to at most; 0: all. Those that an indexer picks are priced as a window.
Whole window_of(const AttentionShape& a) {
    return a.index_heads > 0 ? a.index_tokens : a.window;
}

/// Pairs of tokens that one sequence of `tokens` attends to, each token to `most` at most.
double attended(const AttentionShape& attention, double tokens, Whole most) {
    const double window = most == 0 ? tokens : std::min<double>(tokens, static_cast<double>(most));
    if (!attention.causal) return tokens * tokens;
    return window * (window + 1) / 2 + (tokens - window) * window;
}

/// Heads of a GPU. Key and value heads that are fewer than the GPUs are repeated.
struct Heads {
    Whole queries, keys;
    Heads(const AttentionShape& attention, int tensor)
        : queries(attention.heads / tensor), keys(std::max<std::int64_t>(attention.kv_heads / tensor, 1)) {}
};

/// The heads of a GPU as the kernel sees them; sequences and tokens are the caller's.
AttentionCall call_of(const AttentionShape& a, const StepShape& step, const Heads& heads,
                      AttentionKind kind) {
    AttentionCall call;
    call.kind = kind;
    call.window = narrowed<std::int32_t>(window_of(a), "the attention's window");
    call.heads = narrowed<std::int16_t>(heads.queries, "the number of heads of a GPU");
    call.kv_heads =
        narrowed<std::int16_t>(a.latent() ? heads.queries : heads.keys, "the number of key heads of a GPU");
    call.head_dim = narrowed<std::int16_t>(a.head_dim, "the size of a head");
    if (a.value_dim != a.head_dim)
        call.value_dim = narrowed<std::int16_t>(a.value_dim, "the size of a value head");
    call.mask = a.causal ? AttentionMask::causal : AttentionMask::none;
    call.dtype = call.kv_dtype = output_type(step.dtype);
    return call;
}

/// Pairs of tokens that all sequences of a GPU attend to.
double pairs_of(const AttentionShape& a, const StepShape& step, Whole most) {
    const Whole rows = rows_of(step) * step.spread.context, rest = rows % step.sequence;
    const double pairs =
        static_cast<double>(rows / step.sequence) * attended(a, static_cast<double>(step.sequence), most) +
        attended(a, static_cast<double>(rest), most);
    return pairs / step.spread.context;  // parts of a sequence are spread so that each has as many
}

/// Columns of keys and values that the kernel reads.
Whole kept_columns(const AttentionShape& a, const Heads& heads) {
    return (a.latent() ? heads.queries : heads.keys) * (a.head_dim + a.value_dim);
}

/// QKᵀ and PV of `pairs` of tokens; Q and the rows of K and V read once, the result written once. Softmax is not
/// counted. Sequences and tokens of the call are the caller's.
StreamingWork kernel_of(const AttentionShape& a, const StepShape& step, const Heads& heads, double pairs,
                        Whole attended_rows, const OperatorList& list) {
    const Whole rows = rows_of(step);
    StreamingWork work =
        list.streams(rows * heads.queries * a.head_dim + attended_rows * kept_columns(a, heads),
                     rows * heads.queries * a.value_dim);
    work.flops = Flops(2 * pairs * static_cast<double>(heads.queries * (a.head_dim + a.value_dim)));
    work.dtype = output_type(step.dtype);
    work.attention = call_of(a, step, heads, AttentionKind::prefill);
    return work;
}

/// One fused kernel for all sequences.
StreamingWork whole_sequences(const AttentionShape& a, const StepShape& step, const Heads& heads,
                              const OperatorList& list) {
    const Whole attended_rows = rows_of(step) * step.spread.context,
                read_rows =
                    step.spread.exchange == ContextExchange::a2a ? Whole(rows_of(step)) : attended_rows;
    StreamingWork work = kernel_of(a, step, heads, pairs_of(a, step, window_of(a)), read_rows, list);
    work.attention.sequences =
        narrowed<std::int32_t>(share(attended_rows, step.sequence), "the number of sequences");
    work.attention.tokens =
        narrowed<std::int32_t>(std::min<std::int64_t>(attended_rows, step.sequence), "a sequence");
    // A part of the queries is priced as all queries of a part of the heads, which are as many FLOPs.
    work.attention.heads = static_cast<std::int16_t>(share(work.attention.heads, step.spread.context));
    work.attention.kv_heads = std::min(work.attention.kv_heads, work.attention.heads);
    return work;
}

/// Attention of a GPU's part of each sequence to the keys of one GPU of its ring, its own (`own`) or another one's.
/// Causal: a GPU has one part from the front and one from the back of a sequence (zigzag), so that with each GPU's keys
/// it has two products of two such parts: all of its queries with one of them, or one of its parts with both.
StreamingWork part_of_ring(const AttentionShape& a, const StepShape& step, const Heads& heads, bool own,
                           const OperatorList& list) {
    const std::int64_t part = step.sequence / step.spread.context, sequences = rows_of(step) / part;
    const bool halves = a.causal && !own;
    const double pairs =
        halves ? static_cast<double>(part * part) / 2 : attended(a, static_cast<double>(part), 0);
    StreamingWork work =
        kernel_of(a, step, heads, static_cast<double>(sequences) * pairs, rows_of(step), list);
    if (halves) work.attention.mask = AttentionMask::none;
    work.attention.sequences =
        narrowed<std::int32_t>((halves ? 2 : 1) * sequences, "the number of sequences");
    work.attention.tokens = narrowed<std::int32_t>(halves ? part / 2 : part, "a sequence");
    return work;
}

/// A message of `bytes` from each GPU to the next in its context group.
SendWork to_next_of_ring(const Parallelism& spread, Bytes bytes) {
    SendWork send{bytes, {}, {}};
    for (int rank = 0; rank < spread.gpus / spread.stages; ++rank) {
        const int place = rank / spread.tensor % spread.context;
        send.from.push_back(rank);
        send.to.push_back(rank + ((place + 1) % spread.context - place) * spread.tensor);
    }
    return send;
}

/// Attention to the keys and values of one GPU after another, each of which are sent on meanwhile. The sum of the parts
/// reads each of them once.
void add_ring(const AttentionShape& a, const StepShape& step, const Heads& heads, OperatorList& list) {
    const SendWork send = to_next_of_ring(
        step.spread, matrix_size(rows_of(step), kept_columns(a, heads), output_type(step.dtype)));
    std::size_t keys = list.last();
    std::vector<std::size_t> parts{list.add("attention", part_of_ring(a, step, heads, true, list))};
    for (int turn = 1; turn < step.spread.context; ++turn) {
        const std::string number = std::to_string(turn);
        keys = list.add("ring_send_" + number, send, {keys});
        parts.push_back(list.add("ring_attention_" + number, part_of_ring(a, step, heads, false, list),
                                 {keys, parts.back()}));
    }
    const Whole result = rows_of(step) * heads.queries * a.value_dim;
    list.add("ring_sum", list.streams(step.spread.context * result, result), parts);
}

/// Queries for one key head up to which decode's kernels on tensor cores were measured (`grouped_to` of the calibrations).
constexpr Whole rows_of_decode_tile = 32;

/// The next token of each sequence, its drafted ones, and the keys and values of its context. Latent attention reads the
/// latents, which all heads share, and multiplies in their space.
StreamingWork one_token(const AttentionShape& a, const StepShape& step, const Heads& heads,
                        const OperatorList& list) {
    const Whole sequences = sequences_of(step), queries = 1 + step.decoding.draft, rows = sequences * queries;
    const Whole window = window_of(a);
    const Whole context =
        window == 0 ? Whole(step.sequence) : Whole(std::min<std::int64_t>(step.sequence, window));
    const Whole key = a.latent() ? a.kv_rank + a.rope_dim : a.head_dim,
                value = a.latent() ? a.kv_rank : a.value_dim;
    const Whole kept = a.latent() ? key : heads.keys * (key + value);
    StreamingWork work = list.streams(rows * heads.queries * key, rows * heads.queries * value);
    const DType cached = step.stored.fp8_caches ? DType::fp8 : output_type(step.dtype);
    work.read += matrix_size(sequences, context * kept, cached);
    work.flops =
        Flops(2.0 * static_cast<double>(rows * context) * static_cast<double>(heads.queries * (key + value)));
    work.dtype = output_type(step.dtype);
    if (a.latent()) return work;  // no table has a kernel that shares latents: a roofline
    work.attention = call_of(a, step, heads, AttentionKind::decode);
    work.attention.kv_dtype = cached;
    work.attention.sequences = narrowed<std::int32_t>(sequences, "the number of sequences");
    // Queries of a sequence read the same keys, as those of heads that share a key head do. Further ones count as free.
    work.attention.heads = narrowed<std::int16_t>(
        std::min<std::int64_t>(heads.queries * queries,
                               std::max<std::int64_t>(heads.queries, rows_of_decode_tile * heads.keys)),
        "the number of queries of a sequence");
    work.attention.tokens = narrowed<std::int32_t>(step.sequence, "the context");
    return work;
}

/// A chunk of a prompt of as many tokens as contexts have, half of which were processed before, as one whole sequence
/// with as many pairs.
StreamingWork chunk_of_prompt(const AttentionShape& a, const StepShape& step, const Heads& heads,
                              const OperatorList& list) {
    StepShape chunk = step;
    chunk.phase = Phase::prefill;
    chunk.tokens = step.decoding.chunk * step.spread.data;
    const Whole window = window_of(a), before = step.sequence / 2,
                seen = window == 0 ? before : Whole(std::min<std::int64_t>(before, window));
    const double pairs = static_cast<double>(step.decoding.chunk) * static_cast<double>(seen);
    StreamingWork work = kernel_of(a, chunk, heads, pairs, Whole(step.decoding.chunk) + seen, list);
    work.attention.sequences = 1;
    work.attention.tokens = narrowed<std::int32_t>(std::llround(std::sqrt(2 * pairs)), "a chunk");
    return work;
}

void add_decode(const AttentionShape& a, const StepShape& step, const Heads& heads, OperatorList& list) {
    list.add("attention", one_token(a, step, heads, list));
    if (step.decoding.chunk > 0) list.add("chunk_attention", chunk_of_prompt(a, step, heads, list));
}

/// Queries, keys and values through their latents, as Megatron-Core spreads them (NVIDIA/Megatron-LM 003b4ce
/// core/transformer/multi_latent_attention.py): projections into latents are on every GPU, for the rows that it
/// normalises; those out of them have the columns of the GPU's heads, and read the gathered latents.
void add_latent_projections(const Model& model, const AttentionShape& a, const StepShape& step,
                            const Heads& heads, std::size_t input, OperatorList& list) {
    const Whole rows = rows_of(step), own = norm_rows_of(step), nope = a.head_dim - a.rope_dim;
    const Whole normed = own * (a.q_rank + a.kv_rank), read = a.q_rank > 0 ? a.q_rank : model.hidden;
    list.add("qkv_latent", list.gemm(own, a.latent_columns(), model.hidden), {input});
    const std::size_t latents = list.add("latent_norm", list.streams(normed, normed));
    // What the next operator needs: the gathered rows of `source`, or where nothing is gathered the operator before it.
    std::vector<std::size_t> gathers;
    const auto gathered = [&](const std::string& name, std::int64_t columns, std::size_t source) {
        if (!shards_sequence(step)) return list.last();
        return gathers.emplace_back(add_gather(step, name, columns, source, list));
    };
    const std::size_t of_queries = gathered("queries_gather", read, a.q_rank > 0 ? latents : input);
    const std::size_t queries =
        list.add("queries", list.gemm(rows, heads.queries * a.head_dim, read), {of_queries});
    const std::size_t of_keys = gathered("keys_values_gather", a.kv_rank, latents);
    if (step.phase ==
        Phase::decode)  // queries are projected into the latent space, instead of the context out of it
        list.add("absorb_keys", list.gemm(rows, a.kv_rank, nope, heads.queries), {queries});
    else
        list.add("keys_values", list.gemm(rows, heads.queries * (nope + a.value_dim), a.kv_rank), {of_keys});
    std::vector<std::size_t> needs{list.last()};
    gathered("rotary_gather", a.rope_dim, latents);
    if (!gathers.empty()) needs.insert(needs.end(), {queries, of_keys, gathers.back()});
    const Whole rotated = rows * (heads.queries + 1) * a.rope_dim;
    list.add("rotary", list.streams(rotated, rotated), needs);
}

/// Columns of a GPU's queries, keys and values, as far as the layer makes them, and of what scales the result.
Whole made_columns(const AttentionShape& a, const StepShape& step, const Heads& heads) {
    return heads.queries * a.head_dim + (a.makes_keys ? heads.keys * a.head_dim : Whole(0)) +
           (a.makes_values ? heads.keys * a.value_dim : Whole(0)) + share(a.gate, step.spread.tensor);
}

/// What picks the tokens that a token attends to (DeepSeek-V3.2-Exp's report, equation 1): each head's product of a
/// query with the key of every token before, of which the scores are summed. Every GPU does it for all heads.
void add_index(const Model& model, const AttentionShape& a, const StepShape& step, OperatorList& list) {
    const Whole rows = rows_of(step), columns = a.index_heads * a.index_dim;
    list.add("index_queries", list.gemm(rows, columns, a.q_rank > 0 ? a.q_rank : model.hidden));
    list.add("index_keys", list.gemm(rows, a.index_dim + a.index_heads, model.hidden));
    const bool decode = step.phase == Phase::decode;
    const Whole keys = decode ? sequences_of(step) * Whole(step.sequence) : rows;
    const double pairs = decode ? static_cast<double>(rows * step.sequence) : pairs_of(a, step, 0);
    StreamingWork work = list.streams(rows * columns + keys * a.index_dim, rows * a.index_tokens);
    work.flops = Flops(2 * pairs * static_cast<double>(columns));
    work.dtype = output_type(step.dtype);
    list.add("index", work);
}

void add_whole_sequences(const AttentionShape& a, const StepShape& step, const Heads& heads,
                         OperatorList& list) {
    const Parallelism& spread = step.spread;
    const bool shared = spread.context > 1;
    if (shared && spread.exchange == ContextExchange::p2p) return add_ring(a, step, heads, list);
    const auto exchange = [&](const char* name, CollectiveKind kind, Whole rows, Whole columns) {
        list.add(name, list.collective(kind, rows, columns, true, spread.context_group()));
    };
    const bool heads_change = shared && spread.exchange == ContextExchange::a2a;
    const Whole rows = rows_of(step);
    if (heads_change)
        exchange("heads_scatter", CollectiveKind::all_to_all, rows,
                 heads.queries * a.head_dim + kept_columns(a, heads));
    else if (shared)
        exchange("context_gather", CollectiveKind::all_gather, rows * spread.context,
                 a.latent() ? a.kv_rank + a.rope_dim : kept_columns(a, heads));
    list.add("attention", whole_sequences(a, step, heads, list));
    if (heads_change) exchange("heads_gather", CollectiveKind::all_to_all, rows, heads.queries * a.value_dim);
}

}  // namespace

std::size_t add_attention(const Model& model, const AttentionShape& a, const StepShape& step,
                          std::size_t norm, OperatorList& list) {
    const Heads heads(a, step.spread.tensor);
    const Whole rows = rows_of(step);
    std::size_t input = norm;
    if (a.latent()) {
        add_latent_projections(model, a, step, heads, input, list);
        if (a.index_heads > 0) add_index(model, a, step, list);
    } else {
        input = add_gather(step, "attention_gather", model.hidden, norm, list);
        list.add("qkv", list.gemm(rows, made_columns(a, step, heads), model.hidden), {input});
        const Whole rotated = rows * (heads.queries + heads.keys) * a.head_dim;
        if (a.rotary && step.rotates_apart) list.add("rotary", list.streams(rotated, rotated));
    }
    if (step.phase == Phase::decode)
        add_decode(a, step, heads, list);
    else
        add_whole_sequences(a, step, heads, list);
    if (a.latent() && step.phase == Phase::decode)
        list.add("absorb_values", list.gemm(rows, a.value_dim, a.kv_rank, heads.queries));
    const Whole result = rows * heads.queries * a.value_dim;
    if (a.gate > 0) list.add("attention_gate", list.streams(2 * result, result));
    list.add("attention_out", list.gemm(rows, model.hidden, heads.queries * a.value_dim));
    return input;
}

}  // namespace overlap
