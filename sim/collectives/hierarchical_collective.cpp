#include <algorithm>

#include "sim/collectives/call_order.hpp"
#include "sim/collectives/collective_algorithm.hpp"

namespace overlap {

RankTasks direct_collective(const CollectiveWork& work, const RankTasks& ready, Transfers& transfers);

namespace {

// N nodes of L ranks. A rank's rail is the set of ranks with its number in the other nodes. Bytes between
// nodes cross the NIC of their source to the same rail only, and no byte of a gathered or reduced operand
// crosses the network twice: all_gather and reduce_scatter move N−1 pieces of the P = N·L through each NIC,
// where direct moves P−L. all_to_all first collects, at the rank of the destination's rail, all pieces of its
// node for other nodes (like NCCL's PXN): a NIC sends N−1 messages of L pieces instead of P−L single pieces,
// and a rank sends 2P−N−L pieces in all instead of P−1.

/// Number of waves for the peers of a rail: one wave is on the network while another is inside the
/// nodes. An estimate: more waves hide little (a quarter of one phase remains exposed), and each pays
/// the network latency again.
constexpr std::size_t most_waves = 4;

std::size_t waves(const Transfers& transfers) {
    return std::min(most_waves, static_cast<std::size_t>(transfers.nodes() - 1));
}

/// Peers of the rail in a wave.
std::vector<int> wave_of(int rank, std::size_t wave, const Transfers& transfers) {
    const std::vector<int> rail = transfers.rail_peers(rank);
    const auto edge = [&](std::size_t w) {
        return rail.begin() + static_cast<std::ptrdiff_t>(rail.size() * w / waves(transfers));
    };
    return {edge(wave), edge(wave + 1)};
}

/// Calls `copy(src, dst)` for all pairs within nodes.
template <class Copy>
void in_nodes(const Transfers& transfers, Copy&& copy) {
    for_each_copy(
        transfers, Wanting::receivers, [&](int gpu) { return transfers.node_peers(gpu); }, copy);
}

// The own shard goes to the node's other ranks at once. Shards from the rail arrive in waves; the shards
// of a wave are forwarded within the node together.
RankTasks gather_by_rails(Bytes piece, const RankTasks& ready, Transfers& transfers) {
    const BuiltRanks& built = transfers.built();
    RankTasks done = ready;
    const auto spread = [&](Bytes bytes, const RankTasks& held) {
        in_nodes(transfers, [&](int src, int dst) {
            built.give(done, dst, transfers.copy(src, dst, {bytes, bytes, src, -1}, built.of(held, src)));
        });
    };
    spread(piece, ready);
    RankTasks before;  // arrivals of the previous wave
    for (std::size_t wave = 0; wave < waves(transfers); ++wave) {
        RankTasks arrived(ready.size());
        for (const int rank : built.ranks()) {
            std::vector<TaskId>& own = arrived[built.place(rank)];
            for (const int peer : wave_of(rank, wave, transfers)) {
                const auto held = built.of(ready, peer);
                std::vector<TaskId> after(held.begin(), held.end());
                if (wave > 0) {
                    const auto& last = before[built.place(rank)];
                    after.push_back(last[std::min(own.size(), last.size() - 1)]);
                }
                own.push_back(transfers.copy(peer, rank, {piece, piece, peer, -1}, after));
            }
        }
        spread(static_cast<double>(arrived[0].size()) * piece, arrived);
        for (std::size_t rank = 0; rank < done.size(); ++rank)
            done[rank].insert(done[rank].end(), arrived[rank].begin(), arrived[rank].end());
        before = std::move(arrived);
    }
    return done;
}

// In each wave, a node's pieces for one rail are collected at the rank of that rail, summed there if
// `reduces`, and sent through its NIC. Pieces for the own node come last.
RankTasks distribute_by_rails(Bytes piece, bool reduces, const RankTasks& ready, Transfers& transfers) {
    const int per_node = transfers.ranks_per_node();
    const BuiltRanks& built = transfers.built();
    RankTasks arrived(ready.size());
    const auto at = [&](auto& tasks, int rank) -> auto& {
        return tasks[built.place(rank)];
    };
    /// Every rank gets `pieces(rank)` pieces from each peer of its node.
    const auto collect = [&](auto&& pieces, RankTasks& into) {
        in_nodes(transfers, [&](int src, int dst) {
            const Bytes bytes = pieces(dst) * piece;
            built.give(into, dst, transfers.copy(src, dst, {bytes, bytes}, built.of(ready, src)));
        });
    };
    const auto sum = [&](int rank, Bytes bytes, int parts, std::vector<TaskId>& of) {
        of = {transfers.add(Task{ReduceWork{bytes, parts}, rank, local_stream}, of)};
    };
    for (std::size_t wave = 0; wave < waves(transfers); ++wave) {
        const auto peers_of = [&](int rank) { return wave_of(rank, wave, transfers); };
        const auto pieces_of = [&](int rank) { return static_cast<double>(peers_of(rank).size()); };
        RankTasks collected = ready;
        collect(pieces_of, collected);
        for (const int rank : built.ranks()) {
            auto& held = at(collected, rank);
            if (reduces && per_node > 1) sum(rank, pieces_of(rank) * piece, per_node, held);
            const Bytes sent = (reduces ? 1.0 : per_node) * piece;
            for (const int peer : peers_of(rank))
                built.give(arrived, peer, transfers.copy(rank, peer, {sent, sent, peer, -1}, held));
        }
    }
    RankTasks done = ready;
    collect([](int) { return 1.0; }, done);
    for (const int rank : built.ranks()) {
        auto& all = at(done, rank);
        all.insert(all.end(), at(arrived, rank).begin(), at(arrived, rank).end());
        if (reduces) sum(rank, piece, per_node + transfers.nodes() - 1, all);
    }
    return done;
}

}  // namespace

RankTasks hierarchical_collective(const CollectiveWork& work, const RankTasks& ready, Transfers& transfers) {
    if (transfers.nodes() == 1) return direct_collective(work, ready, transfers);
    const Bytes piece = work.operand / transfers.ranks();
    switch (work.kind) {
        case CollectiveKind::all_gather:
            return gather_by_rails(piece, ready, transfers);
        case CollectiveKind::reduce_scatter:
        case CollectiveKind::all_to_all:
            return distribute_by_rails(piece, work.kind == CollectiveKind::reduce_scatter, ready, transfers);
        case CollectiveKind::all_reduce:
            return gather_by_rails(piece, distribute_by_rails(piece, true, ready, transfers), transfers);
    }
    return ready;
}

}  // namespace overlap
