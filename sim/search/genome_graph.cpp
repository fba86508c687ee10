#include <algorithm>

#include "sim/schedules/pieces.hpp"
#include "sim/search/genome.hpp"

namespace overlap {
namespace {

class GenomeGraph {
public:
    GenomeGraph(const Genome& genome, const SearchSpace& space)
        : genome_(genome),
          space_(space),
          whole_(space.pair, space.ranks, 1, CommShape::one_d),
          parts_(space.parts(genome)),
          before_(static_cast<std::size_t>(space.ranks)) {
        std::vector<std::int64_t> next(before_.size());
        for (const SearchStep& step : genome.steps)
            for (int rank = 0; rank < space.ranks; ++rank) {
                auto& steps = before_[static_cast<std::size_t>(rank)];
                auto& rows = next[static_cast<std::size_t>(rank)];
                // Columns of a shard follow each other in place, so a stage then has its rows once.
                steps.push_back(genome.columns ? rows_of(rank, 1, step.first - 1, step) : rows);
                if (is_staged(step)) rows += rows_of(rank, step.first, step.last, step);
            }
        const bool any =
            std::ranges::any_of(genome.steps, [&](const SearchStep& one) { return is_staged(one); });
        for (int rank = 0; rank < space.ranks; ++rank)
            staged_.push_back(!genome.columns ? next[static_cast<std::size_t>(rank)]
                              : any           ? rows_of(rank, 1, space.ranks - 1, genome.steps.front())
                                              : 0);
    }

    const std::vector<std::int64_t>& staged_rows() const { return staged_; }

    Plan build(bool placed) {
        plan_.origin = "plan";
        plan_.gpus = ranks();
        const std::size_t tasks = genome_.steps.size() * before_.size() * (before_.size() + 2);
        plan_.graph.reserve(tasks, 2 * tasks);
        gemms_.assign(genome_.steps.size(), std::vector<TaskId>(before_.size()));
        copies_.assign(genome_.steps.size(),
                       std::vector<std::vector<TaskId>>(before_.size(), std::vector<TaskId>(before_.size())));
        if (space_.gathers()) {
            copy_all();
            for (int rank = 0; rank < ranks(); ++rank) multiply(rank);
        } else {
            for (int rank = 0; rank < ranks(); ++rank) multiply(rank);
            copy_all();
            add_up();
        }
        if (std::ranges::any_of(genome_.steps, &SearchStep::side))
            plan_.graph.name_streams({{side_stream(0), "second"}});
        if (placed) place();
        return std::move(plan_);
    }

private:
    enum Slot : std::size_t { a, b, c, stage_a, stage_c, arrived, slots };

    int ranks() const { return space_.ranks; }
    const GemmShape& whole() const { return space_.pair.gemm; }
    int owner(int rank, int distance) const { return (rank + distance) % ranks(); }
    std::int64_t end_of(std::int64_t part, std::int64_t length) const {
        return part == parts_ ? length : std::min(part * genome_.unit, length);
    }
    /// Of A before a GEMM, of C behind it.
    Extent piece(int shard, std::int64_t from, std::int64_t to) const {
        Extent extent = whole_.extent(shard, -1);
        if (genome_.columns) {
            const std::int64_t begin = end_of(from, extent.columns);
            return {extent.row, begin, extent.rows, end_of(to, extent.columns) - begin};
        }
        const std::int64_t begin = end_of(from, extent.rows);
        return {extent.row + begin, 0, end_of(to, extent.rows) - begin, extent.columns};
    }
    Extent piece(int shard, const SearchStep& step) const { return piece(shard, step.from, step.to); }
    std::int64_t rows_of(int rank, int first, int last, const SearchStep& step) const {
        std::int64_t rows = 0;
        for (int d = first; d <= last; ++d) rows += piece(owner(rank, d), step).rows;
        return rows;
    }
    bool is_all(const SearchStep& step) const {
        return step.shards() == ranks() && (genome_.columns || step.to - step.from == parts_);
    }
    /// Pieces of several shards are no block in place, but where they are all rows.
    bool is_staged(const SearchStep& step) const { return step.shards() > 1 && !is_all(step); }
    bool in_stage(const SearchStep& step) const {
        return is_staged(step) || (genome_.columns && staged_.front() > 0 && step.first > 0);
    }

    static Block block(int rank, Slot slot, const Extent& at) {
        return {static_cast<std::size_t>(rank) * slots + slot, at.row, at.column, at.rows, at.columns};
    }
    /// What the step's GEMM reads of A (writes of C), in the stage or in place.
    Extent operand(std::size_t step, int rank) const {
        const SearchStep& one = genome_.steps[step];
        Extent at = piece(owner(rank, one.first), one);
        if (in_stage(one)) at.row = before_[static_cast<std::size_t>(rank)][step];
        if (is_all(one)) at.row = 0;
        at.rows = rows_of(rank, one.first, one.last, one);
        return at;
    }
    /// Where a step has a piece of a shard, which may be a part of the step's.
    Block held(std::size_t step, int rank, int distance, std::int64_t from, std::int64_t to) const {
        const SearchStep& one = genome_.steps[step];
        const Extent own = piece(owner(rank, distance), one);
        Extent part = piece(owner(rank, distance), from, to);
        const bool staged = in_stage(one);
        if (staged)
            part.row += before_[static_cast<std::size_t>(rank)][step] +
                        rows_of(rank, one.first, distance - 1, one) - own.row;
        return block(rank, space_.gathers() ? (staged ? stage_a : a) : (staged ? stage_c : c), part);
    }

    TaskId add(const Task& task, std::vector<Block> from, std::vector<Block> to,
               std::span<const TaskId> after) {
        operands_.push_back({std::move(from), std::move(to)});
        return plan_.graph.add(task, after);
    }

    void copy_all() {
        const auto each_distance = [&](std::size_t step, auto&& visit) {
            for (int d = std::max(genome_.steps[step].first, 1); d <= genome_.steps[step].last; ++d) visit(d);
        };
        if (space_.in_turn)
            for (std::size_t step = 0; step < genome_.steps.size(); ++step)
                each_distance(step, [&](int d) {
                    for (int rank = 0; rank < ranks(); ++rank) copy(step, rank, d);
                });
        else  // by the GPU that executes them
            for (int gpu = 0; gpu < ranks(); ++gpu)
                for (std::size_t step = 0; step < genome_.steps.size(); ++step)
                    each_distance(step, [&](int d) {
                        const bool own =
                            (genome_.steps[step].direction == Direction::pull) == space_.gathers();
                        copy(step, own ? gpu : owner(gpu, ranks() - d), d);
                    });
    }

    /// Brings a piece to `rank`, or takes it from there.
    void copy(std::size_t number, int rank, int distance) {
        const SearchStep& step = genome_.steps[number];
        const int peer = owner(rank, distance);
        const Extent at = piece(peer, step);
        const DType type = space_.pair.operand_type();
        CopyWork work{.src = space_.gathers() ? peer : rank,
                      .dst = space_.gathers() ? rank : peer,
                      .bytes = matrix_size(at.rows, at.columns, type),
                      .run = matrix_size(1, at.columns, type),
                      .agent = step.agent,
                      .direction = step.direction,
                      .cus = step.agent == Agent::cu ? step.cus : 0};
        if (!genome_.columns || at.rows == 1) work.run = work.bytes;
        work.all_pairs = ranks() > 2 && space_.ranks_per_node > 2 &&
                         work.src / space_.ranks_per_node == work.dst / space_.ranks_per_node;
        const int gpu = step.direction == Direction::pull ? work.dst : work.src;
        const int other = gpu == rank ? peer : rank;
        const Task task{.work = work,
                        .gpu = gpu,
                        .stream = transfer_stream(step.lane < 0 ? other : owner(gpu, 1 + step.lane)),
                        .shard = peer,
                        .chunk = static_cast<int>(number),
                        .priority = step.agent == Agent::cu && step.urgent ? 1 : 0};
        const Block mine = held(number, rank, distance, step.from, step.to);
        auto& id = copies_[number][static_cast<std::size_t>(rank)][static_cast<std::size_t>(distance)];
        if (space_.gathers()) {
            id = add(task, {block(peer, a, at)}, {mine}, {});
        } else {
            const TaskId made = gemms_[number][static_cast<std::size_t>(rank)];
            id = add(task, {mine}, {part_at(peer, rank, step.from, step.to)}, std::span(&made, 1));
        }
    }

    /// Where partial results of `source` arrive at the owner of the shard.
    Block part_at(int shard, int source, std::int64_t from, std::int64_t to) const {
        Extent at = piece(shard, from, to);
        at.row += source * part_length(whole().m, ranks(), 0) - whole_.extent(shard, -1).row;
        return block(shard, arrived, at);
    }

    TaskId add_local(int rank, LocalCopyWork work, std::vector<Block> from, std::vector<Block> to,
                     std::size_t step, std::span<const TaskId> after) {
        return add({.work = work, .gpu = rank, .stream = local_stream, .chunk = static_cast<int>(step)},
                   std::move(from), std::move(to), after);
    }

    /// Copies the rows of the shards first … last between A or C and its stage.
    TaskId restage(int rank, std::size_t number, int first, int last, std::span<const TaskId> after) {
        const bool out = space_.gathers();  // rows of C out of the stage; else rows of A into it
        const std::int64_t width = out ? whole().n : whole().k;
        const DType type = out ? output_type(whole().dtype) : whole().dtype;
        const SearchStep& step = genome_.steps[number];
        Extent staged{genome_.columns ? 0 : before_[static_cast<std::size_t>(rank)][number], 0, 0, width};
        std::vector<Block> in_place, in_stage;
        std::int64_t rows = 0;
        for (int d = first; d <= last; ++d) {
            Extent at = genome_.columns ? whole_.extent(owner(rank, d), -1) : piece(owner(rank, d), step);
            at.column = 0;
            at.columns = width;
            staged.rows = at.rows;
            in_place.push_back(block(rank, out ? c : a, at));
            in_stage.push_back(block(rank, out ? stage_c : stage_a, staged));
            staged.row += at.rows;
            rows += at.rows;
        }
        if (out) std::swap(in_place, in_stage);
        return add_local(rank, {matrix_size(rows, width, type), matrix_size(1, width, type)},
                         std::move(in_place), std::move(in_stage), number, after);
    }

    void multiply(int rank) {
        const bool gathers = space_.gathers(), by_rows = !genome_.columns;
        const auto r = static_cast<std::size_t>(rank);
        const bool stages = staged_[r] > 0;
        TaskId rows_ready = 0, last = 0;
        bool are_ready = false;
        std::vector<bool> written(before_.size());  // by distance
        for (std::size_t number = 0; number < genome_.steps.size(); ++number) {
            const SearchStep& step = genome_.steps[number];
            std::vector<TaskId> after;
            for (int d = std::max(step.first, 1); gathers && d <= step.last; ++d)
                after.push_back(copies_[number][r][static_cast<std::size_t>(d)]);
            if (gathers && is_staged(step) && step.first == 0) {
                const Extent own = piece(rank, step);
                const DType type = space_.pair.operand_type();
                const Bytes bytes = matrix_size(own.rows, own.columns, type);
                after.push_back(add_local(rank, {bytes, bytes}, {block(rank, a, own)},
                                          {held(number, rank, 0, step.from, step.to)}, number, {}));
            }
            if (!gathers && is_staged(step) && by_rows)
                after.push_back(restage(rank, number, step.first, step.last, {}));
            if (!gathers && !by_rows && in_stage(step)) {
                if (!are_ready) rows_ready = restage(rank, number, 1, ranks() - 1, {});
                are_ready = true;
                after.push_back(rows_ready);
            }
            const Extent at = operand(number, rank);
            GemmShape shape = gemm_of(genome_, step, space_, rank);
            shape.accumulate = gathers && !by_rows && written[static_cast<std::size_t>(step.first)];
            std::fill(written.begin() + step.first, written.begin() + step.last + 1, true);
            const Slot in = in_stage(step) ? stage_a : a, out = in_stage(step) ? stage_c : c;
            const std::vector<Block> from =
                gathers
                    ? std::vector{block(rank, in, at), block(rank, b, {at.column, 0, at.columns, whole().n})}
                    : std::vector{block(rank, in, {at.row, 0, at.rows, whole().k}),
                                  block(rank, b, {0, at.column, whole().k, at.columns})};
            const Block to =
                gathers ? block(rank, out, {at.row, 0, at.rows, whole().n}) : block(rank, out, at);
            last = gemms_[number][r] = add({.work = shape,
                                            .gpu = rank,
                                            .stream = step.side ? side_stream(0) : compute_stream,
                                            .shard = step.shards() == 1 ? owner(rank, step.first) : -1,
                                            .chunk = static_cast<int>(number),
                                            .gemm_cus = step.units},
                                           from, {to}, after);
            if (gathers && by_rows && is_staged(step))
                restage(rank, number, step.first, step.last, std::span(&last, 1));
        }
        if (gathers && !by_rows && stages)
            restage(rank, genome_.steps.size() - 1, 1, ranks() - 1, std::span(&last, 1));
    }

    /// Sums at the owners: of parts that no step cuts, in the order in which their last piece is made.
    void add_up() {
        std::vector<std::int64_t> cuts{0};
        for (const SearchStep& step : genome_.steps) cuts.push_back(step.to);
        std::ranges::sort(cuts);
        cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
        struct Part {
            std::size_t last;
            std::int64_t from, to;
        };
        std::vector<Part> parts;
        for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
            parts.push_back({0, cuts[i], cuts[i + 1]});
            for (std::size_t step = 0; step < genome_.steps.size(); ++step)
                if (covers(genome_.steps[step], cuts[i])) parts.back().last = step;
        }
        std::ranges::stable_sort(parts, {}, &Part::last);
        for (const auto& part : parts)
            for (int rank = 0; rank < ranks(); ++rank) sum(rank, part.last, part.from, part.to);
    }

    static bool covers(const SearchStep& step, std::int64_t part) {
        return step.from <= part && part < step.to;
    }

    void sum(int rank, std::size_t last, std::int64_t from, std::int64_t to) {
        const Extent at = piece(rank, from, to);
        const Bytes bytes = matrix_size(at.rows, at.columns, space_.pair.operand_type());
        std::vector<Block> blocks;
        std::vector<TaskId> after;
        for (int d = 0; d < ranks(); ++d)
            for (std::size_t step = 0; step < genome_.steps.size(); ++step) {
                const SearchStep& one = genome_.steps[step];
                if (!covers(one, from) || d < one.first || d > one.last) continue;
                const int source = owner(rank, ranks() - d);
                blocks.push_back(d == 0 ? held(step, rank, 0, from, to) : part_at(rank, source, from, to));
                after.push_back(
                    d == 0 ? gemms_[step][static_cast<std::size_t>(rank)]
                           : copies_[step][static_cast<std::size_t>(source)][static_cast<std::size_t>(d)]);
            }
        const TaskId done = add({.work = ReduceWork{.bytes = bytes, .parts = ranks()},
                                 .gpu = rank,
                                 .stream = local_stream,
                                 .shard = rank,
                                 .chunk = static_cast<int>(last)},
                                std::move(blocks), {block(rank, c, at)}, after);
        if (space_.pair.collective != CollectiveKind::all_reduce) return;
        for (int d = 1; d < ranks(); ++d) {
            const int peer = owner(rank, d);
            const SearchStep& like = genome_.steps[last];
            CopyWork work{.src = rank,
                          .dst = peer,
                          .bytes = bytes,
                          .run = bytes,
                          .agent = like.agent,
                          .direction = Direction::push,
                          .cus = like.agent == Agent::cu ? like.cus : 0};
            if (genome_.columns && at.rows > 1)
                work.run = matrix_size(1, at.columns, space_.pair.operand_type());
            work.all_pairs = ranks() > 2;
            add({.work = work, .gpu = rank, .stream = transfer_stream(peer), .shard = rank},
                {block(rank, c, at)}, {block(peer, c, at)}, std::span(&done, 1));
        }
    }

    void place() {
        Placement placement;
        const DType type = whole().dtype, out = output_type(type);
        const bool gathers = space_.gathers();
        for (int rank = 0; rank < ranks(); ++rank) {
            const std::int64_t staged = staged_[static_cast<std::size_t>(rank)];
            const std::int64_t parts = gathers ? 0 : part_length(whole().m, ranks(), 0) * ranks();
            const auto add_buffer = [&](const char* name, std::int64_t rows, std::int64_t columns,
                                        DType dtype) {
                placement.buffers.push_back({rank, name, rows, columns, dtype});
            };
            add_buffer("a", whole().m, whole().k, type);
            add_buffer("b", whole().k, whole().n, type);
            add_buffer("c", whole().m, whole().n, out);
            add_buffer("stage a", staged, whole().k, type);
            add_buffer("stage c", staged, whole().n, out);
            add_buffer("parts", parts, whole().n, out);
            const Extent own = whole_.extent(rank, -1);
            placement.inputs.push_back(gathers ? block(rank, a, own)
                                               : block(rank, a, {0, 0, whole().m, whole().k}));
            placement.inputs.push_back(block(rank, b, {0, 0, whole().k, whole().n}));
            placement.results.push_back(space_.pair.collective == CollectiveKind::reduce_scatter
                                            ? block(rank, c, own)
                                            : block(rank, c, {0, 0, whole().m, whole().n}));
        }
        placement.tasks = std::move(operands_);
        plan_.placement = std::move(placement);
    }

    const Genome& genome_;
    const SearchSpace& space_;
    Pieces whole_;
    std::int64_t parts_;
    std::vector<std::vector<std::int64_t>> before_;  ///< by rank and step: first row in the stage
    std::vector<std::int64_t> staged_;               ///< by rank: rows of a stage
    Plan plan_;
    std::vector<Operands> operands_;
    std::vector<std::vector<TaskId>> gemms_;                ///< by step and rank
    std::vector<std::vector<std::vector<TaskId>>> copies_;  ///< by step, rank and distance
};

}  // namespace

Plan plan_of(const Genome& genome, const SearchSpace& space, bool placed) {
    return GenomeGraph(genome, space).build(placed);
}

Bytes staging_of(const Genome& genome, const SearchSpace& space) {
    const GemmShape& gemm = space.pair.gemm;
    const std::vector<std::int64_t> staged = GenomeGraph(genome, space).staged_rows();
    const std::int64_t most = *std::ranges::max_element(staged);
    Bytes bytes = matrix_size(most, gemm.k, gemm.dtype) + matrix_size(most, gemm.n, output_type(gemm.dtype));
    if (!space.gathers()) bytes += matrix_size(gemm.m, gemm.n, output_type(gemm.dtype));
    return bytes;
}

}  // namespace overlap
