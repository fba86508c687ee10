#include <array>

#include "sim/collectives/call_order.hpp"
#include "sim/schedules/pieces.hpp"

namespace overlap {
namespace {

/// Tasks by (rank, shard, chunk), of ranks that are built.
class TaskCube {
public:
    TaskCube(const Transfers& transfers, int chunks)
        : built_(transfers.built()),
          ranks_(static_cast<std::size_t>(transfers.ranks())),
          chunks_(static_cast<std::size_t>(chunks)),
          tasks_(built_.count() * ranks_ * chunks_) {}
    TaskId& at(int rank, int shard, int chunk) {
        return tasks_[(built_.place(rank) * ranks_ + static_cast<std::size_t>(shard)) * chunks_ +
                      static_cast<std::size_t>(chunk)];
    }
    /// Gives a piece to any rank.
    void give(int rank, int shard, int chunk, TaskId id) {
        at(rank, built_.seen_from(rank, shard), chunk) = built_.given(rank, id);
    }

private:
    const BuiltRanks& built_;
    std::size_t ranks_, chunks_;
    std::vector<TaskId> tasks_;
};

// The schedules of "Design Space Exploration of DMA based Finer-Grain Compute Communication Overlap": pieces
// one level finer than a shard, from all peers at every step. A named point fixes the three axes; `ficco` reads
// them. Without chunks, hetero and unfused, whole shards come from (go to) all peers at once: the own shard first
// (last), then a GEMM for each in order r+1, r+2, …
class PieceGraph {
public:
    PieceGraph(const Pair& pair, const Topology& topology, const ScheduleParams& params, TaskGraph& graph)
        : graph_(graph),
          pieces_(pair, topology.gpus(), params.chunks, params.point.shape),
          transfers_(graph_, topology, params.transfers),
          built_(transfers_.built()),
          fused_(params.point.granularity == Granularity::fused),
          hetero_(params.point.uniformity == Uniformity::hetero),
          scatter_(params.scatter),
          peers_(peers_of_all(transfers_)) {
        reserve();
    }

    void build() {
        if (pieces_.collective_first())
            gather_then_multiply();
        else
            multiply_then_send();
    }

private:
    /// A copy for each piece, and an edge for each copy; the GEMMs.
    void reserve() {
        const std::size_t steps = built_.count() * static_cast<std::size_t>(pieces_.chunks());
        const std::size_t copies = steps * static_cast<std::size_t>(pieces_.ranks() - 1);
        const bool each = !fused_ && !pieces_.gathers_results();
        const std::size_t gemms = (hetero_ ? built_.count() : 0) + (each ? copies : steps);
        graph_.reserve(copies + (pieces_.ranks() == 1 ? 1 : gemms), copies);
    }

    void gather_then_multiply() {
        TaskCube arrival(transfers_, pieces_.chunks());
        std::vector<Payload> payloads(static_cast<std::size_t>(pieces_.ranks()));  // by shard
        const auto copy = [&](int rank, int peer, int chunk) {
            arrival.at(rank, peer, chunk) =
                transfers_.copy(peer, rank, payloads[static_cast<std::size_t>(peer)]);
        };
        for (int chunk = 0; chunk < pieces_.chunks(); ++chunk) {
            for (int shard = 0; shard < pieces_.ranks(); ++shard)
                payloads[static_cast<std::size_t>(shard)] = pieces_.payload(shard, chunk);
            for_each_wanted(transfers_, peers_, Wanting::receivers,
                            [&](int rank, int peer) { copy(rank, peer, chunk); });
        }
        for (const int rank : built_.ranks()) multiply_arrivals(rank, arrival);
    }

    void multiply_arrivals(int rank, TaskCube& arrival) {
        GemmStream gemms(transfers_, pieces_, rank);
        const bool alone = peers(rank).empty();
        if (hetero_ || alone) gemms.add(rank, -1, {});
        if (alone) return;
        const std::vector<int> step_shards = shards_of_a_step(rank);
        TaskId last = 0;
        std::vector<TaskId> after;
        for (int chunk = 0; chunk < pieces_.chunks(); ++chunk) {
            if (!fused_) {
                for (const int shard : step_shards) {
                    const std::array<TaskId, 1> arrived{arrival.at(rank, shard, chunk)};
                    gemms.add(shard, chunk, shard == rank ? std::span<const TaskId>() : arrived);
                }
                continue;
            }
            after.clear();
            for (const int peer : peers(rank)) after.push_back(arrival.at(rank, peer, chunk));
            if (scatter_) stage_before(rank, step_shards, chunk, after);
            last = gemms.add(step_shards, chunk, after);
            if (scatter_ && !tokens_in_k() && !pieces_.strided()) place_rows(rank, step_shards, chunk, last);
        }
        // 2d accumulates into a stage without the own rows; a single copy at the end puts its rows in place.
        if (scatter_ && fused_ && hetero_ && pieces_.strided() && !tokens_in_k())
            place_rows(rank, step_shards, pieces_.chunks() - 1, last);
    }

    /// Own piece into the stage (uniform 1d), and the rows of B into stage order (tokens in K).
    void stage_before(int rank, std::span<const int> shards, int chunk, std::vector<TaskId>& after) {
        if (!hetero_ && !pieces_.strided()) {
            const Payload own = pieces_.payload(rank, chunk);
            after.push_back(add_local({own.bytes, own.run}, rank, rank, chunk, {}));
        }
        const bool b_in_place = pieces_.strided() && !hetero_;
        if (tokens_in_k() && !b_in_place && (chunk == 0 || !pieces_.strided()))
            after.push_back(add_local(pieces_.restage(pieces_.gemm(shards, chunk)), rank, -1, chunk, {}));
    }

    void place_rows(int rank, std::span<const int> shards, int chunk, TaskId gemm) {
        const std::array<TaskId, 1> after{gemm};
        add_local(pieces_.restage(pieces_.gemm(shards, chunk)), rank, -1, chunk, after);
    }

    void multiply_then_send() {
        TaskCube produced(transfers_, pieces_.chunks());
        for (const int rank : built_.ranks()) multiply_for_owners(rank, produced);

        TaskCube partial(transfers_, pieces_.chunks());  // (owner, source, chunk)
        for (int chunk = 0; chunk < pieces_.chunks(); ++chunk)
            for_each_wanted(transfers_, peers_, Wanting::senders, [&](int rank, int to) {
                const int shard = pieces_.gathers_results() ? rank : to;
                const std::array<TaskId, 1> after{produced.at(rank, shard, chunk)};
                partial.give(to, rank, chunk,
                             transfers_.copy(rank, to, pieces_.payload(shard, chunk), after));
            });
        if (!pieces_.reduces() || pieces_.ranks() == 1) return;
        for (int chunk = 0; chunk < pieces_.chunks(); ++chunk) finish_chunk(chunk, produced, partial);
    }

    void multiply_for_owners(int rank, TaskCube& produced) {
        GemmStream gemms(transfers_, pieces_, rank);
        const std::vector<int> step_shards =
            pieces_.ranks() == 1 ? std::vector<int>() : shards_of_a_step(rank);
        for (int chunk = 0; chunk < pieces_.chunks() && !step_shards.empty(); ++chunk) {
            if (fused_) {
                std::vector<TaskId> after;
                if (scatter_ && (!pieces_.strided() || (hetero_ && chunk == 0)))
                    after.push_back(
                        add_local(pieces_.restage(pieces_.gemm(step_shards, chunk)), rank, -1, chunk, {}));
                const TaskId gemm = gemms.add(step_shards, chunk, after);
                for (const int shard : step_shards) produced.at(rank, shard, chunk) = gemm;
            } else {
                for (const int shard : step_shards)
                    produced.at(rank, shard, chunk) = gemms.add(shard, chunk, {});
            }
        }
        if (!hetero_ && !step_shards.empty()) return;
        const TaskId own = gemms.add(rank, -1, {});
        for (int chunk = 0; chunk < pieces_.chunks(); ++chunk) produced.at(rank, rank, chunk) = own;
    }

    void finish_chunk(int chunk, TaskCube& produced, TaskCube& partial) {
        RankTasks parts;
        for (const int owner : built_.ranks()) {
            parts.push_back({produced.at(owner, owner, chunk)});
            for (const int peer : peers(owner)) parts.back().push_back(partial.at(owner, peer, chunk));
        }
        add_reductions(pieces_, transfers_, chunk, parts);
    }

    /// Shards that are cut into pieces at `rank`, in the order of their pieces within a step.
    /// Arriving shards: the own one first, because it is already there. Results: the own one last,
    /// because no other rank needs it.
    std::vector<int> shards_of_a_step(int rank) const {
        if (pieces_.gathers_results()) return {rank};
        std::vector<int> shards = peers(rank);
        if (hetero_) return shards;
        shards.insert(pieces_.collective_first() ? shards.begin() : shards.end(), rank);
        return shards;
    }

    TaskId add_local(LocalCopyWork work, int rank, int shard, int chunk, std::span<const TaskId> after) {
        return transfers_.add(Task{work, rank, local_stream, shard, chunk}, after);
    }

    const std::vector<int>& peers(int rank) const { return peers_[built_.place(rank)]; }

    bool tokens_in_k() const { return pieces_.pair().shard_dim == ShardDim::k; }

    TaskGraph& graph_;
    Pieces pieces_;
    Transfers transfers_;
    const BuiltRanks& built_;
    bool fused_;
    bool hetero_;
    bool scatter_;
    std::vector<std::vector<int>> peers_;  ///< by rank that is built
};

}  // namespace

void add_pieces(const Workload& workload, const Topology& topology, const ScheduleParams& params,
                TaskGraph& graph) {
    PieceGraph(*workload.pair(), topology, params, graph).build();
}

}  // namespace overlap
