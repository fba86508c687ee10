#include "sim/schedules/pieces.hpp"

#include <cassert>

#include "sim/collectives/call_order.hpp"

namespace overlap {

Pieces::Pieces(const Pair& pair, int ranks, int chunks, CommShape shape)
    : pair_(pair), ranks_(ranks), chunks_(chunks), shape_(shape) {
    const GemmShape& gemm = pair.gemm;
    const bool along_k = pair.shard_dim == ShardDim::k;
    sharded_ = along_k ? gemm.k : gathers_results() ? ranks * gemm.m : gemm.m;
    other_ = along_k ? gemm.m : collective_first() ? gemm.k : gemm.n;
    const std::string dimension = along_k ? "k" : "m";
    if (sharded_ < ranks)
        throw UserError("gemm." + dimension + " is " + std::to_string(sharded_) +
                        ", less than one for each of " + std::to_string(ranks) + " GPUs");
    const std::int64_t cut = strided() ? other_ : sharded_ / ranks;
    if (cut < chunks)
        throw UserError("chunks is " + std::to_string(chunks) +
                        ", but the dimension that is cut has length " + std::to_string(cut) +
                        " in the smallest shard (allowed: 1 to " + std::to_string(cut) + ")");
}

std::int64_t Pieces::sharded_length(int shard, int chunk) const {
    const std::int64_t whole = part_length(sharded_, ranks_, shard);
    return chunk < 0 || strided() ? whole : part_length(whole, chunks_, chunk);
}

std::int64_t Pieces::other_length(int chunk) const {
    return chunk < 0 || !strided() ? other_ : part_length(other_, chunks_, chunk);
}

Payload Pieces::payload(int shard, int chunk) const {
    const std::int64_t rows = sharded_length(shard, chunk);
    const std::int64_t columns = other_length(chunk);
    const Bytes bytes = matrix_size(rows, columns, pair_.operand_type());
    const bool contiguous = columns == other_ || rows == 1;
    return {bytes, contiguous ? bytes : matrix_size(1, columns, pair_.operand_type()), shard, chunk};
}

GemmShape Pieces::gemm_of(std::int64_t sharded, std::int64_t other) const {
    GemmShape shape = pair_.gemm;
    if (pair_.shard_dim == ShardDim::k) {
        shape.k = sharded;
        shape.m = other;
    } else {
        shape.m = sharded;
        (collective_first() ? shape.k : shape.n) = other;
    }
    return shape;
}

GemmShape Pieces::gemm(std::span<const int> shards, int chunk) const {
    std::int64_t sharded = 0;
    for (const int shard : shards) sharded += sharded_length(shard, chunk);
    return gemm_of(sharded, other_length(chunk));
}

Extent Pieces::extent(int shard, int chunk) const {
    assert(pair_.shard_dim == ShardDim::m);
    const std::int64_t whole = part_length(sharded_, ranks_, shard);
    Extent extent{part_start(sharded_, ranks_, shard), 0, sharded_length(shard, chunk), other_length(chunk)};
    if (chunk >= 0 && strided()) extent.column = part_start(other_, chunks_, chunk);
    if (chunk >= 0 && !strided()) extent.row += part_start(whole, chunks_, chunk);
    return extent;
}

std::size_t Pieces::block_of_c(int shard, int chunk) const {
    const bool k_is_cut_in_shards = pair_.shard_dim == ShardDim::k;
    const bool k_is_cut_in_chunks = collective_first() && strided() != k_is_cut_in_shards;
    const int row_block = k_is_cut_in_shards ? 0 : shard;
    const int chunk_block = k_is_cut_in_chunks ? 0 : chunk;
    return static_cast<std::size_t>(row_block) * static_cast<std::size_t>(chunks_) +
           static_cast<std::size_t>(chunk_block);
}

// 1d, collective first, sharded along M: the rows of C are computed in stage order and then put in place.
// Along K: the rows of B are brought into stage order before. GEMM first: the rows of A are brought into
// stage order before. 2d: whole rows (or slabs) are already in place, except without the own shard.
LocalCopyWork Pieces::restage(const GemmShape& fused) const {
    const bool along_k = pair_.shard_dim == ShardDim::k;
    if (collective_first() && !along_k) {
        const DType type = output_type(fused.dtype);
        return {matrix_size(fused.m, fused.n, type), matrix_size(1, fused.n, type)};
    }
    if (along_k) return {matrix_size(fused.k, fused.n, fused.dtype), matrix_size(1, fused.n, fused.dtype)};
    return {matrix_size(fused.m, fused.k, fused.dtype), matrix_size(1, fused.k, fused.dtype)};
}

TaskId GemmStream::add(std::span<const int> shards, int chunk, std::span<const TaskId> after) {
    assert(!shards.empty());
    GemmShape shape = pieces_.gemm(shards, chunk);
    // A whole shard writes the blocks of all its chunks; a fused GEMM those of all its shards.
    const int first = chunk < 0 ? 0 : chunk;
    const int last = chunk < 0 ? pieces_.chunks() - 1 : chunk;
    shape.accumulate = written_[pieces_.block_of_c(shards[0], first)];
    for (const int shard : shards)
        for (int c = first; c <= last; ++c) written_[pieces_.block_of_c(shard, c)] = true;
    const int label = shards.size() == 1 ? shards[0] : -1;
    return transfers_.add(Task{shape, rank_, compute_stream, label, chunk}, after);
}

void add_reductions(const Pieces& pieces, Transfers& transfers, int chunk, const RankTasks& parts) {
    RankTasks sums;
    for (const int owner : transfers.built().ranks())
        sums.push_back({transfers.add(Task{ReduceWork{pieces.payload(owner, chunk).bytes, pieces.ranks()},
                                           owner, local_stream, owner, chunk},
                                      parts[transfers.built().place(owner)])});
    if (pieces.pair().collective != CollectiveKind::all_reduce) return;
    const auto peers = [&](int gpu) { return transfers.peers(gpu); };
    for_each_copy(transfers, Wanting::senders, peers, [&](int owner, int peer) {
        transfers.copy(owner, peer, pieces.payload(owner, chunk), transfers.built().of(sums, owner));
    });
}

}  // namespace overlap
