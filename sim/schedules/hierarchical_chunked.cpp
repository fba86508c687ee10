#include <array>

#include "sim/collectives/call_order.hpp"
#include "sim/core/ranges.hpp"
#include "sim/schedules/pieces.hpp"

namespace overlap {
namespace {

/// Tasks of each (rank, chunk).
class ChunkTasks {
public:
    ChunkTasks(const BuiltRanks& built, int chunks)
        : built_(built), tasks_(static_cast<std::size_t>(chunks), RankTasks(built.count())) {}
    /// The tasks of a rank that is built.
    std::vector<TaskId>& at(int rank, int chunk) { return of_chunk(chunk)[built_.place(rank)]; }
    std::span<const TaskId> of(int rank, int chunk) { return built_.of(of_chunk(chunk), rank); }
    void give(int rank, int chunk, TaskId id) { built_.give(of_chunk(chunk), rank, id); }

private:
    RankTasks& of_chunk(int chunk) { return tasks_[static_cast<std::size_t>(chunk)]; }

    const BuiltRanks& built_;
    std::vector<RankTasks> tasks_;
};

// Each shard has C chunks. Chunk c crosses the NIC to the rank's rail in the other nodes, and each rank
// forwards the chunks c from its rail within its node, in one copy for each peer. Own chunks go to the
// node at once. GEMMs as in hetero_fused_1d: the own shard, then in each step one GEMM over chunk c of
// the P−1 others. Mirrored for GEMM → reduce-scatter: the rank of the owner's rail sums partial results
// in the node, and the sums cross its NIC. Gathered results are computed chunk by chunk. With N nodes of
// L GPUs a chunk takes P·(N−1) transfers between nodes, 2·P·(L−1) inside them, and P GEMMs. On one node
// it equals hetero_fused_1d.
class HierarchicalGraph {
public:
    HierarchicalGraph(const Pair& pair, const Topology& topology, const ScheduleParams& params,
                      TaskGraph& graph)
        : graph_(graph),
          pieces_(pair, topology.gpus(), params.chunks, CommShape::one_d),
          transfers_(graph_, topology, params.transfers),
          built_(transfers_.built()),
          scatter_(params.scatter) {
        // In each step a GEMM, copies from the ranks of the node and of the rail, and forwarding within the node.
        const int in_node = transfers_.ranks_per_node() - 1, rail = transfers_.nodes() - 1;
        const int of_step = pieces_.ranks() == 1 ? 0 : 1 + in_node + rail + (rail > 0 ? in_node : 0);
        graph_.reserve(built_.count() * static_cast<std::size_t>(pieces_.chunks() * of_step), 0);
        for (const int rank : built_.ranks()) {
            node_peers_.push_back(transfers_.node_peers(rank));
            rail_peers_.push_back(transfers_.rail_peers(rank));
        }
    }

    void build() {
        if (pieces_.collective_first())
            multiply_arrivals(gather(no_tasks()));
        else if (pieces_.gathers_results())
            gather(own_results());
        else
            multiply_then_reduce();
    }

private:
    /// `held`: tasks after which a rank has a chunk of its own shard. Returns the tasks after which it has
    /// that chunk of all other shards.
    ChunkTasks gather(ChunkTasks held) {
        ChunkTasks from_rail = no_tasks(), arrived = no_tasks();
        const auto forward = [&](int chunk) {
            for_each_pair(node_peers_, [&](int src, int dst) {
                arrived.give(dst, chunk,
                             transfers_.copy(src, dst, for_rail(src, chunk), from_rail.of(src, chunk)));
            });
        };
        const bool several_nodes = transfers_.nodes() > 1;
        for (int chunk = 0; chunk < pieces_.chunks(); ++chunk) {
            for (const auto& [peers, into] :
                 {std::pair(&rail_peers_, &from_rail), std::pair(&node_peers_, &arrived)})
                for_each_pair(*peers, [&, to = into](int src, int dst) {
                    to->give(dst, chunk,
                             transfers_.copy(src, dst, pieces_.payload(src, chunk), held.of(src, chunk)));
                });
            // After the next own chunk, which does not wait for the network.
            if (several_nodes && chunk > 0) forward(chunk - 1);
        }
        if (several_nodes) forward(pieces_.chunks() - 1);
        for_each_rank_and_chunk(
            [&](int rank, int chunk) { append(arrived.at(rank, chunk), from_rail.at(rank, chunk)); });
        return arrived;
    }

    void multiply_arrivals(ChunkTasks arrived) {
        for (const int rank : built_.ranks()) {
            GemmStream gemms(transfers_, pieces_, rank);
            gemms.add(rank, -1, {});
            const std::vector<int> peers = transfers_.peers(rank);
            for (int chunk = 0; chunk < pieces_.chunks() && !peers.empty(); ++chunk) {
                std::vector<TaskId>& after = arrived.at(rank, chunk);
                // Tokens in K: rows of B into stage order before; otherwise rows of C into place afterwards.
                if (scatter_ && tokens_in_k()) after.push_back(restage(rank, peers, chunk, {}));
                const std::array<TaskId, 1> gemm{gemms.add(peers, chunk, after)};
                if (scatter_ && !tokens_in_k()) restage(rank, peers, chunk, gemm);
            }
        }
    }

    ChunkTasks own_results() {
        ChunkTasks produced = no_tasks();
        for (const int rank : built_.ranks()) {
            GemmStream gemms(transfers_, pieces_, rank);
            if (pieces_.ranks() == 1)
                gemms.add(rank, -1, {});
            else
                for (int chunk = 0; chunk < pieces_.chunks(); ++chunk)
                    produced.at(rank, chunk) = {gemms.add(rank, chunk, {})};
        }
        return produced;
    }

    void multiply_then_reduce() {
        ChunkTasks produced = no_tasks(), parts = no_tasks();  // for others; of the own shard
        for (const int rank : built_.ranks()) {
            GemmStream gemms(transfers_, pieces_, rank);
            const std::vector<int> peers = transfers_.peers(rank);
            for (int chunk = 0; chunk < pieces_.chunks() && !peers.empty(); ++chunk) {
                std::vector<TaskId> after;
                if (scatter_) after.push_back(restage(rank, peers, chunk, {}));
                produced.at(rank, chunk) = {gemms.add(peers, chunk, after)};
            }
            const TaskId own = gemms.add(rank, -1, {});
            for (int chunk = 0; chunk < pieces_.chunks(); ++chunk) parts.at(rank, chunk) = {own};
        }
        if (pieces_.ranks() == 1) return;
        for (int chunk = 0; chunk < pieces_.chunks(); ++chunk) {
            if (transfers_.nodes() > 1) send_to_rails(chunk, produced, parts);
            for_each_pair(node_peers_, [&](int src, int dst) {
                parts.give(dst, chunk,
                           transfers_.copy(src, dst, pieces_.payload(dst, chunk), produced.of(src, chunk)));
            });
        }
        ChunkTasks sums = no_tasks();
        const int count = transfers_.ranks_per_node() + transfers_.nodes() - 1;
        for_each_rank_and_chunk([&](int rank, int chunk) {
            sums.at(rank, chunk) = {
                add_sum(rank, rank, chunk, pieces_.payload(rank, chunk).bytes, count, parts.at(rank, chunk))};
        });
        if (pieces_.pair().collective == CollectiveKind::all_reduce) gather(std::move(sums));
    }

    /// Sums, within a node, its ranks' chunk `chunk` for a rail in other nodes, and sends the sum.
    void send_to_rails(int chunk, ChunkTasks& produced, ChunkTasks& parts) {
        RankTasks collected(built_.count());
        for_each_pair(node_peers_, [&](int src, int dst) {
            built_.give(collected, dst,
                        transfers_.copy(src, dst, for_rail(dst, chunk), produced.of(src, chunk)));
        });
        for (const int rank : built_.ranks()) {
            std::vector<TaskId> held = produced.at(rank, chunk);
            append(held, collected[built_.place(rank)]);
            if (transfers_.ranks_per_node() > 1)
                held = {
                    add_sum(rank, -1, chunk, for_rail(rank, chunk).bytes, transfers_.ranks_per_node(), held)};
            for (const int owner : rail_peers_[built_.place(rank)])
                parts.give(owner, chunk, transfers_.copy(rank, owner, pieces_.payload(owner, chunk), held));
        }
    }

    /// The chunks `chunk` of the shards of a rank's rail in the other nodes, together. Ranks that are alike have shards
    /// of one length.
    Payload for_rail(int rank, int chunk) const {
        Bytes bytes;
        for (const int peer : rail_peers_[built_.place(rank)]) bytes += pieces_.payload(peer, chunk).bytes;
        return {bytes, bytes, -1, chunk};
    }

    TaskId add_sum(int rank, int shard, int chunk, Bytes bytes, int count, std::span<const TaskId> parts) {
        return transfers_.add(Task{ReduceWork{bytes, count}, rank, local_stream, shard, chunk}, parts);
    }
    TaskId restage(int rank, std::span<const int> shards, int chunk, std::span<const TaskId> after) {
        const LocalCopyWork work = pieces_.restage(pieces_.gemm(shards, chunk));
        return transfers_.add(Task{work, rank, local_stream, -1, chunk}, after);
    }

    /// Calls `visit(src, dst)`. A step needs the pieces of all peers, so the
    /// executing GPU may choose their order.
    template <class Visit>
    void for_each_pair(const std::vector<std::vector<int>>& peers, Visit&& visit) {
        for_each_copy(
            transfers_, pieces_.collective_first() ? Wanting::receivers : Wanting::senders,
            [&](int gpu) -> const auto& { return peers[built_.place(gpu)]; }, visit);
    }
    template <class Visit>
    void for_each_rank_and_chunk(Visit&& visit) {
        for (int chunk = 0; chunk < pieces_.chunks(); ++chunk)
            for (const int rank : built_.ranks()) visit(rank, chunk);
    }

    ChunkTasks no_tasks() const { return {built_, pieces_.chunks()}; }
    bool tokens_in_k() const { return pieces_.pair().shard_dim == ShardDim::k; }

    TaskGraph& graph_;
    Pieces pieces_;
    Transfers transfers_;
    const BuiltRanks& built_;
    bool scatter_;
    std::vector<std::vector<int>> node_peers_, rail_peers_;  ///< by rank that is built
};

}  // namespace

void add_hierarchical_chunked(const Workload& workload, const Topology& topology,
                              const ScheduleParams& params, TaskGraph& graph) {
    HierarchicalGraph(*workload.pair(), topology, params, graph).build();
}

}  // namespace overlap
