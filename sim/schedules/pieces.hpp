#pragma once

#include <algorithm>
#include <set>
#include <vector>

#include "sim/collectives/collective_algorithm.hpp"
#include "sim/schedules/schedule.hpp"

namespace overlap {

/// Part `index` of `total` cut into `parts`: equal but for the first total mod parts, which are one longer.
constexpr std::int64_t part_length(std::int64_t total, std::int64_t parts, std::int64_t index) {
    return total / parts + (index < total % parts ? 1 : 0);
}

/// Where part `index` begins.
constexpr std::int64_t part_start(std::int64_t total, std::int64_t parts, std::int64_t index) {
    return total / parts * index + std::min(index, total % parts);
}

/// A block of a matrix.
struct Extent {
    std::int64_t row = 0, column = 0, rows = 0, columns = 0;
};

/// How the communicated operand of a pair is cut into pieces (shard, chunk), and which GEMM a piece makes.
/// The operand has a sharded dimension (rows of A, of C, or of the C of all GPUs; K with tokens in K) and
/// another one; 1d cuts a shard along the first, which leaves contiguous pieces, 2d along the second, which
/// leaves strided blocks.
class Pieces {
public:
    /// Throws UserError where there are more ranks or chunks than there is length to cut.
    Pieces(const Pair& pair, int ranks, int chunks, CommShape shape);

    int ranks() const { return ranks_; }
    int chunks() const { return chunks_; }
    const Pair& pair() const { return pair_; }
    bool collective_first() const { return pair_.order == Order::collective_first; }
    /// Each rank has one shard to compute, its own, and all others want it.
    bool gathers_results() const { return pair_.gathers_results(); }
    bool reduces() const {
        return pair_.collective == CollectiveKind::reduce_scatter ||
               pair_.collective == CollectiveKind::all_reduce;
    }
    bool strided() const { return shape_ == CommShape::two_d; }

    /// What is sent of chunk `chunk` of shard `shard` (chunk −1: the whole shard).
    Payload payload(int shard, int chunk) const;
    /// The GEMM over that piece of each of `shards` together (chunk −1: whole shards). `accumulate` is left
    /// unset.
    GemmShape gemm(std::span<const int> shards, int chunk) const;
    /// Where that lies in the whole operand; shard_dim m only.
    Extent extent(int shard, int chunk) const;
    /// A number for the block of C that this GEMM adds to; GEMMs with the same number need accumulation.
    std::size_t block_of_c(int shard, int chunk) const;
    std::size_t blocks_of_c() const { return block_of_c(ranks_ - 1, chunks_ - 1) + 1; }
    /// Bytes to bring together, or to put in place, around a fused GEMM with these dimensions; 0 where the
    /// pieces of a step lie in place already.
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

/// The GEMMs of one rank in stream order; knows which of them find C written already.
class GemmStream {
public:
    GemmStream(TaskGraph& graph, const Pieces& pieces, int rank)
        : graph_(graph), pieces_(pieces), rank_(rank), written_(pieces.blocks_of_c()) {}
    /// GEMM over chunk `chunk` of `shards` (−1: whole shards), after `after`.
    TaskId add(std::span<const int> shards, int chunk, std::span<const TaskId> after);
    TaskId add(int shard, int chunk, std::span<const TaskId> after) {
        return add(std::span(&shard, 1), chunk, after);
    }

private:
    TaskGraph& graph_;
    const Pieces& pieces_;
    int rank_;
    std::vector<bool> written_;  ///< by block of C
};

/// The sums of the partial results of chunk `chunk` at the owners of its pieces, each after its `parts` (by
/// owner), and for all_reduce the way of the sums to everybody.
void add_reductions(const Pieces& pieces, Transfers& transfers, int chunk, const RankTasks& parts);

/// The task graph of any point of the space, for every form of pair that has an order. With one chunk, hetero
/// and unfused it is the shard-at-a-time schedule.
TaskGraph build_pieces(const Pair& pair, const Topology& topology, const ScheduleParams& params,
                       PiecePoint point);
GraphSize size_of_pieces(const Pair& pair, const Topology& topology, const ScheduleParams& params,
                         PiecePoint point);

}  // namespace overlap
