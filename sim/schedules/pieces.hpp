#pragma once

#include <algorithm>
#include <vector>

#include "sim/collectives/collective_algorithm.hpp"
#include "sim/schedules/schedule.hpp"

namespace overlap {

/// Length of part `index` of `total` cut into `parts`: equal parts, but the
/// first total mod parts are one longer.
constexpr std::int64_t part_length(std::int64_t total, std::int64_t parts, std::int64_t index) {
    return total / parts + (index < total % parts ? 1 : 0);
}

/// Begin of part `index`.
constexpr std::int64_t part_start(std::int64_t total, std::int64_t parts, std::int64_t index) {
    return total / parts * index + std::min(index, total % parts);
}

/// A block of a matrix.
struct Extent {
    std::int64_t row = 0, column = 0, rows = 0, columns = 0;
};

/// How the communicated operand of a pair is cut into pieces (shard, chunk), and which GEMM belongs to a
/// piece. The operand has a sharded dimension (rows of A, of C, or of the C of all GPUs; K with tokens in K)
/// and another one. 1d cuts a shard along the sharded dimension into contiguous pieces, 2d along the other
/// one into strided blocks.
class Pieces {
public:
    /// Throws UserError if the dimension has fewer elements than ranks or chunks.
    Pieces(const Pair& pair, int ranks, int chunks, CommShape shape);

    int ranks() const { return ranks_; }
    int chunks() const { return chunks_; }
    /// Pieces that all ranks together receive, if each gets every piece of the other ranks once.
    std::size_t transfers() const {
        return static_cast<std::size_t>(ranks_) * static_cast<std::size_t>(ranks_ - 1) *
               static_cast<std::size_t>(chunks_);
    }
    const Pair& pair() const { return pair_; }
    bool collective_first() const { return pair_.order == Order::collective_first; }
    /// Whether each rank computes only its own shard, which all others receive.
    bool gathers_results() const { return pair_.gathers_results(); }
    bool reduces() const {
        return pair_.collective == CollectiveKind::reduce_scatter ||
               pair_.collective == CollectiveKind::all_reduce;
    }
    bool strided() const { return shape_ == CommShape::two_d; }

    /// Transfer of chunk `chunk` of shard `shard` (chunk −1: the whole shard).
    Payload payload(int shard, int chunk) const;
    /// The GEMM over that chunk of all of `shards` together (chunk −1: whole shards), without `accumulate`.
    GemmShape gemm(std::span<const int> shards, int chunk) const;
    /// Position of that piece in the whole operand; shard_dim m only.
    Extent extent(int shard, int chunk) const;
    /// A number for the block of C that this GEMM writes. GEMMs with the same number must accumulate.
    std::size_t block_of_c(int shard, int chunk) const;
    std::size_t blocks_of_c() const { return block_of_c(ranks_ - 1, chunks_ - 1) + 1; }
    /// Bytes of local copies around a fused GEMM with these dimensions, before or after it; 0 if the pieces
    /// of a step are already in place.
    LocalCopyWork restage(const GemmShape& fused) const;

private:
    std::int64_t sharded_length(int shard, int chunk) const;
    std::int64_t other_length(int chunk) const;
    GemmShape gemm_of(std::int64_t sharded, std::int64_t other) const;

    Pair pair_;
    int ranks_;
    int chunks_;
    CommShape shape_;
    std::int64_t sharded_ = 0;  ///< whole length of the sharded dimension
    std::int64_t other_ = 0;
};

/// The GEMMs of one rank in stream order; knows which of them must accumulate.
class GemmStream {
public:
    GemmStream(Transfers& transfers, const Pieces& pieces, int rank)
        : transfers_(transfers), pieces_(pieces), rank_(rank), written_(pieces.blocks_of_c()) {}
    /// GEMM over chunk `chunk` of `shards` (−1: whole shards), after `after`.
    TaskId add(std::span<const int> shards, int chunk, std::span<const TaskId> after);
    TaskId add(int shard, int chunk, std::span<const TaskId> after) {
        return add(std::span(&shard, 1), chunk, after);
    }

private:
    Transfers& transfers_;
    const Pieces& pieces_;
    int rank_;
    std::vector<bool> written_;  ///< by block of C
};

/// Sums of the partial results of chunk `chunk` at the owners of its pieces, each after its `parts` (of owners that are
/// built); for all_reduce also the copies of the sums to all ranks.
void add_reductions(const Pieces& pieces, Transfers& transfers, int chunk, const RankTasks& parts);

}  // namespace overlap
