#include "sim/schedules/placement.hpp"

#include <cassert>

#include "sim/schedules/pieces.hpp"

namespace overlap {
namespace {

const Pair& placeable_pair(const Workload& workload) {
    const Pair* pair = workload.pair();
    const bool gathers = pair && pair->collective == CollectiveKind::all_gather;
    const bool reduces = pair && pair->collective == CollectiveKind::reduce_scatter;
    const bool ordered =
        (gathers && pair->order != Order::independent) || (reduces && pair->order == Order::gemm_first);
    if (!ordered || pair->shard_dim != ShardDim::m)
        throw UserError("no placement for a workload '" + workload.form() +
                        "' (allowed: all_gather > gemm, gemm > all_gather and gemm > reduce_scatter, sharded "
                        "along m)");
    return *pair;
}

class Placer {
public:
    Placer(const TaskGraph& graph, const Pair& pair, int ranks, int chunks, PiecePoint point, bool scatter)
        : graph_(graph),
          pair_(pair),
          pieces_(pair, ranks, chunks, point.shape),
          fused_(point.granularity == Granularity::fused && !pair.gathers_results()),
          hetero_(point.uniformity == Uniformity::hetero),
          staged_(ranks > 1 && fused_ && point.staged()) {
        if (staged_ && !scatter)
            throw UserError(
                "no placement without the copies that put fused rows in place (scatter is false)");
    }

    Placement place() {
        for (int rank = 0; rank < ranks(); ++rank) add_buffers(rank);
        for (TaskId id = 0; id < graph_.size(); ++id) {
            graph_.for_each_edge_into(id, [](const Edge& edge) {
                if (edge.of_progress())
                    throw UserError(
                        "no placement for kernels that poll or set flags on the way (progress edges)");
            });
            placement_.tasks.push_back(operands(id));
        }
        return std::move(placement_);
    }

private:
    enum Slot : std::size_t { a, b, c, stage_a, stage_c, parts, slots };

    int ranks() const { return pieces_.ranks(); }
    bool gathers() const { return pieces_.collective_first(); }
    bool gathers_results() const { return pieces_.gathers_results(); }
    std::int64_t rows_of_shard(int shard) const { return pieces_.extent(shard, -1).rows; }
    std::int64_t slot_rows() const { return part_length(pair_.gemm.m, ranks(), 0); }
    std::int64_t rows_of_c() const { return gathers_results() ? ranks() * pair_.gemm.m : pair_.gemm.m; }
    /// First row of `rank`'s product in C.
    std::int64_t first_row(int rank) const { return gathers_results() ? rank * pair_.gemm.m : 0; }

    void add_buffers(int rank) {
        const GemmShape& gemm = pair_.gemm;
        const DType out = output_type(gemm.dtype);
        const std::int64_t staged = !staged_ ? 0 : hetero_ ? gemm.m - rows_of_shard(rank) : gemm.m;
        const auto add = [&](const char* name, std::int64_t rows, std::int64_t columns, DType dtype) {
            placement_.buffers.push_back({rank, name, rows, columns, dtype});
        };
        add("a", gemm.m, gemm.k, gemm.dtype);
        add("b", gemm.k, gemm.n, gemm.dtype);
        add("c", rows_of_c(), gemm.n, out);
        add("stage a", staged, gemm.k, gemm.dtype);
        add("stage c", staged, gemm.n, out);
        add("parts", pieces_.reduces() ? slot_rows() * ranks() : 0, gemm.n, out);
        const Extent own = pieces_.extent(rank, -1);
        const Block all_of_a = block(rank, a, 0, 0, gemm.m, gemm.k);
        const Block all_of_c = block(rank, c, 0, 0, rows_of_c(), gemm.n);
        placement_.inputs.push_back(gathers() ? block(rank, a, own.row, 0, own.rows, gemm.k) : all_of_a);
        placement_.inputs.push_back(block(rank, b, 0, 0, gemm.k, gemm.n));
        placement_.results.push_back(pieces_.reduces() ? block(rank, c, own.row, 0, own.rows, gemm.n)
                                                       : all_of_c);
    }

    static Block block(int rank, Slot slot, std::int64_t row, std::int64_t column, std::int64_t rows,
                       std::int64_t columns) {
        return {static_cast<std::size_t>(rank) * slots + slot, row, column, rows, columns};
    }
    static Block block(int rank, Slot slot, const Extent& extent) {
        return block(rank, slot, extent.row, extent.column, extent.rows, extent.columns);
    }

    bool in_stage(int rank, int shard, int chunk) const {
        return staged_ && chunk >= 0 && !(hetero_ && shard == rank);
    }
    /// Shards of a fused step at `rank`, in the order of their rows in a stage.
    std::vector<int> step_shards(int rank) const {
        std::vector<int> shards;
        for (int shard = 0; shard < ranks(); ++shard)
            if (!hetero_ || shard != rank) shards.push_back(shard);
        return shards;
    }
    /// Position of a piece in a stage: step after step, and within a step shard after shard. Columns are the
    /// same as in the operand, so with 2d every step has all rows.
    Extent extent_in_stage(int rank, int shard, int chunk) const {
        Extent extent = pieces_.extent(shard, chunk);
        extent.row = 0;
        for (const int other : step_shards(rank)) {
            for (int c = 0; c < chunk && !pieces_.strided(); ++c) extent.row += pieces_.extent(other, c).rows;
            if (other < shard) extent.row += pieces_.extent(other, chunk).rows;
        }
        return extent;
    }
    Extent step_in_stage(int rank, int chunk) const {
        const std::vector<int> shards = step_shards(rank);
        Extent step = extent_in_stage(rank, shards.front(), chunk);
        step.rows = 0;
        for (const int shard : shards) step.rows += pieces_.extent(shard, chunk).rows;
        return step;
    }

    Operands operands(TaskId id) const {
        const Task& task = graph_[id];
        if (task.kind() == TaskKind::gemm) return gemm(task);
        if (task.kind() == TaskKind::copy) return copy(task);
        if (task.kind() == TaskKind::local_copy) return local_copy(task);
        if (task.kind() == TaskKind::reduce) return reduce(id);
        throw UserError("no placement for a task '" + task.name() + "'");
    }

    /// The GEMM over an extent of the communicated operand: of A, whose columns are rows of B, or of C, whose
    /// columns are those of B. `at`: the buffer of the rows.
    Operands multiply(int rank, const Extent& at, bool in_stage) const {
        const GemmShape& shape = pair_.gemm;
        const Slot from = in_stage ? stage_a : a, to = in_stage ? stage_c : c;
        if (gathers())
            return {{block(rank, from, at), block(rank, b, at.column, 0, at.columns, shape.n)},
                    {block(rank, to, at.row, 0, at.rows, shape.n)}};
        return {{block(rank, from, at.row - first_row(rank), 0, at.rows, shape.k),
                 block(rank, b, 0, at.column, shape.k, at.columns)},
                {block(rank, to, at)}};
    }

    Operands gemm(const Task& task) const {
        const auto& shape = std::get<GemmShape>(task.work);
        const std::int64_t others = gathers() ? pair_.gemm.k : pair_.gemm.n;
        Extent at{first_row(task.gpu), 0, pair_.gemm.m, others};
        const bool step = fused_ && task.chunk >= 0;
        if (step && staged_) {
            at = step_in_stage(task.gpu, task.chunk);
        } else if (step) {
            const Extent columns = pieces_.extent(0, task.chunk);
            at.column = columns.column;
            at.columns = columns.columns;
        } else if (task.shard >= 0) {
            at = pieces_.extent(task.shard, task.chunk);
        }
        assert(at.rows == shape.m && at.columns == (gathers() ? shape.k : shape.n));
        static_cast<void>(shape);
        return multiply(task.gpu, at, step && staged_);
    }

    Operands copy(const Task& task) const {
        const auto& work = std::get<CopyWork>(task.work);
        if (task.shard < 0)
            throw UserError("no placement for a copy of several shards, or of a flag (" + task.name() + ")");
        if (!std::holds_alternative<PlainCopy>(work.command) || work.prelaunched)
            throw UserError("no placement for DMA commands other than plain copies (" + task.name() + ")");
        if (gathers()) {
            const Extent piece = pieces_.extent(task.shard, task.chunk);
            const bool staged = in_stage(work.dst, task.shard, task.chunk);
            return {{block(work.src, a, piece)},
                    {staged ? block(work.dst, stage_a, extent_in_stage(work.dst, task.shard, task.chunk))
                            : block(work.dst, a, piece)}};
        }
        if (gathers_results()) {
            const Extent piece = pieces_.extent(task.shard, task.chunk);
            return {{block(work.src, c, piece)}, {block(work.dst, c, piece)}};
        }
        // Each arriving part has a place of its own: by source at the owner, otherwise (ring) by shard.
        Extent part = pieces_.extent(task.shard, task.chunk);
        part.row -= pieces_.extent(task.shard, -1).row;
        part.row += slot_rows() * (task.shard == work.dst ? work.src : task.shard);
        return {{partial(work.src, task.shard, task.chunk)}, {block(work.dst, parts, part)}};
    }

    /// Where `rank` writes its product for a piece; in a ring, where it keeps the sum.
    Block partial(int rank, int shard, int chunk) const {
        if (in_stage(rank, shard, chunk)) return block(rank, stage_c, extent_in_stage(rank, shard, chunk));
        return block(rank, c, pieces_.extent(shard, chunk));
    }

    /// With a shard: copies the own piece into the stage. Without: copies the rows of a step out of the stage
    /// (before a reduction: into it); 2d: all rows at once.
    Operands local_copy(const Task& task) const {
        const int rank = task.gpu;
        if (task.shard >= 0)
            return {{block(rank, a, pieces_.extent(task.shard, task.chunk))},
                    {block(rank, stage_a, extent_in_stage(rank, task.shard, task.chunk))}};
        Operands rows;
        for (const int shard : step_shards(rank)) {
            Extent staged = extent_in_stage(rank, shard, task.chunk);
            Extent placed = pieces_.extent(shard, task.chunk);
            staged.column = placed.column = 0;
            staged.columns = placed.columns = gathers() ? pair_.gemm.n : pair_.gemm.k;
            rows.from.push_back(gathers() ? block(rank, stage_c, staged) : block(rank, a, placed));
            rows.to.push_back(gathers() ? block(rank, c, placed) : block(rank, stage_a, staged));
        }
        return rows;
    }

    /// Sums the own product and the parts that copies brought; the sum is written to C.
    Operands reduce(TaskId id) const {
        const Task& task = graph_[id];
        Operands sum{{partial(task.gpu, task.shard, task.chunk)},
                     {block(task.gpu, c, pieces_.extent(task.shard, task.chunk))}};
        graph_.for_each_edge_into(id, [&](const Edge& edge) {
            if (graph_[edge.predecessor].kind() == TaskKind::copy)
                sum.from.push_back(placement_.tasks[edge.predecessor].to[0]);
        });
        if (static_cast<int>(sum.from.size()) != std::get<ReduceWork>(task.work).parts)
            throw UserError("no placement for a sum whose parts do not come by copies (" + task.name() + ")");
        return sum;
    }

    const TaskGraph& graph_;
    const Pair& pair_;
    Pieces pieces_;
    bool fused_;
    bool hetero_;
    bool staged_;  ///< a fused step uses a stage for the rows of shards that are cut
    Placement placement_;
};

}  // namespace

Placement place(const TaskGraph& graph, const ScheduleEntry& schedule, const Workload& workload,
                const Topology& topology, const ScheduleParams& params) {
    const Pair& pair = placeable_pair(workload);
    return Placer(graph, pair, topology.gpus(), params.chunks, schedule.point(params), params.scatter)
        .place();
}

}  // namespace overlap
