#pragma once

#include <vector>

#include "sim/collectives/transfers.hpp"

// The order in which the host enqueues the copies between ranks. DMA engines that serve first come first
// served, or stream by stream, take copies that are ready together in this order (Transfers::served_in_turn);
// the order is then that of each engine's own GPU. So it is on several nodes, whose programs are their own. Otherwise
// the order matters little: one host thread goes from rank to rank, like the measured programs of
// traces/h200_4/overlap.
namespace overlap {

/// Which end of a copy determines a useful order: receivers multiply what arrives, senders
/// send what they have made.
enum class Wanting { receivers, senders };

/// Calls `copy(src, dst)` for every pair of peers. Served in turn, or one after another on one stream: GPU by GPU that
/// executes copies, each in the order of its own `peers(gpu)`. Otherwise: rank by rank at the `wanting` end.
template <class Peers, class Copy>
void for_each_copy(const Transfers& transfers, Wanting wanting, Peers&& peers, Copy&& copy) {
    const bool in_turn = transfers.enqueued_by_each() || transfers.commands() == DmaCommands::one_stream;
    const bool by_receiver =
        in_turn ? transfers.direction() == Direction::pull : wanting == Wanting::receivers;
    for (const int gpu : transfers.built().ranks())
        for (const int peer : peers(gpu)) copy(by_receiver ? peer : gpu, by_receiver ? gpu : peer);
}

/// Calls `visit(rank, peer)` for every rank that is built at the wanting end and its `peers`, in the order in which the
/// rank needs them; all ranks have the same number of peers. Usually rank by rank. If the peers execute
/// copies that are served in turn, the first peer of every rank comes before the second of any rank: each
/// engine then serves the ranks as they need it, and in rotation no two engines serve one rank at once. The
/// same holds for copies on one stream a GPU, because an engine that serves in enqueue order would otherwise
/// wait for the last copy of one rank before the first copy of the next.
template <class Visit>
void for_each_wanted(const Transfers& transfers, const std::vector<std::vector<int>>& peers, Wanting wanting,
                     Visit&& visit) {
    const bool receivers = wanting == Wanting::receivers, single = transfers.options().single_stream;
    const bool ranks_execute = receivers == (transfers.direction() == Direction::pull);
    const bool by_rank = transfers.enqueued_by_each() ? ranks_execute && !single : !(receivers && single);
    const BuiltRanks& built = transfers.built();
    const auto of = [&](int rank) -> const auto& {
        return peers[built.place(rank)];
    };
    if (by_rank) {
        for (const int rank : built.ranks())
            for (const int peer : of(rank)) visit(rank, peer);
        return;
    }
    for (std::size_t place = 0; place < peers.front().size(); ++place)
        for (const int rank : built.ranks()) visit(rank, of(rank)[place]);
}

/// Transfers::peers of every rank that is built.
inline std::vector<std::vector<int>> peers_of_all(const Transfers& transfers) {
    std::vector<std::vector<int>> peers;
    for (const int rank : transfers.built().ranks()) peers.push_back(transfers.peers(rank));
    return peers;
}

}  // namespace overlap
