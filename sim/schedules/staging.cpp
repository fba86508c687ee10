#include "sim/schedules/staging.hpp"

#include <algorithm>

#include "sim/schedules/pieces.hpp"

namespace overlap {
namespace {

/// Partial results that copies bring to sums on each GPU.
std::vector<Bytes> arrivals_for_sums(const TaskGraph& graph, int gpus) {
    std::vector<Bytes> bytes(static_cast<std::size_t>(gpus));
    for (TaskId id = 0; id < graph.size(); ++id) {
        // Sums on the compute stream are operators of the workload; their inputs are
        // operands, not partial results.
        if (graph[id].kind() != TaskKind::reduce || graph[id].stream != local_stream) continue;
        graph.for_each_edge_into(id, [&](const Edge& edge) {
            if (const auto* copy = std::get_if<CopyWork>(&graph[edge.predecessor].work))
                bytes[static_cast<std::size_t>(graph[id].gpu)] += copy->bytes;
        });
    }
    return bytes;
}

/// Bytes per row (with tokens in K: per slab) of a fused step: the piece of A, and the row of C
/// or, with tokens in K, of B.
Bytes staged_row(const Pair& pair) {
    const GemmShape& gemm = pair.gemm;
    if (pair.shard_dim == ShardDim::k)
        return matrix_size(1, gemm.m, gemm.dtype) + matrix_size(1, gemm.n, gemm.dtype);
    return matrix_size(1, gemm.k, gemm.dtype) + matrix_size(1, gemm.n, output_type(gemm.dtype));
}

/// Adds the stages of a pair, by GPU.
void add_stages(const Pair& pair, const ScheduleEntry& schedule, const ScheduleParams& params,
                std::vector<Bytes>& bytes) {
    const int ranks = static_cast<int>(bytes.size());
    const PiecePoint point = schedule.point(params);
    if (pair.gathers_results() || !point.staged() || !params.scatter || ranks == 1) return;
    const std::int64_t length = pair.shard_dim == ShardDim::k ? pair.gemm.k : pair.gemm.m;
    for (int rank = 0; rank < ranks; ++rank) {
        const std::int64_t own =
            point.uniformity == Uniformity::hetero ? part_length(length, ranks, rank) : 0;
        bytes[static_cast<std::size_t>(rank)] += static_cast<double>(length - own) * staged_row(pair);
    }
}

}  // namespace

Bytes staging_bytes(const TaskGraph& graph, const ScheduleEntry& schedule, const Workload& workload,
                    const Topology& topology, const ScheduleParams& params,
                    std::span<const PairChoice> choices) {
    std::vector<Bytes> bytes = arrivals_for_sums(graph, topology.gpus());
    if (const Pair* pair = workload.pair()) add_stages(*pair, schedule, params, bytes);
    for (const PairChoice& choice : choices) add_stages(choice.pair, *choice.schedule, choice.params, bytes);
    return *std::ranges::max_element(bytes);
}

}  // namespace overlap
