#pragma once

#include <vector>

#include "sim/collectives/transfers.hpp"

// The order in which the host calls for the copies between ranks. Engines that serve first come first served,
// or stream by stream, take copies that are ready together in this order (Transfers::served_in_turn): there
// it is that of each engine's own GPU. Elsewhere it decides little, and is that of one host thread which goes
// from rank to rank, as the measured programs of traces/h200_4/overlap were enqueued.
namespace overlap {

/// Which end of a copy has use for its ranks in a certain order: receivers multiply what arrives, senders
/// send what they have made.
enum class Wanting { receivers, senders };

/// Calls `copy(src, dst)` for every two ranks that are peers. Served in turn: GPU by GPU that executes
/// copies, each in the order of its own `peers(gpu)`. Else rank by rank that wants them.
template <class Peers, class Copy>
void for_each_copy(const Transfers& transfers, Wanting wanting, Peers&& peers, Copy&& copy) {
    const bool by_receiver =
        transfers.served_in_turn() ? transfers.direction() == Direction::pull : wanting == Wanting::receivers;
    for (int gpu = 0; gpu < transfers.ranks(); ++gpu)
        for (const int peer : peers(gpu)) copy(by_receiver ? peer : gpu, by_receiver ? gpu : peer);
}

/// Calls `visit(rank, peer)` for every rank that wants and its `peers`, in the order in which it has use for
/// them; all ranks have as many. Rank by rank, but where the peers execute copies that are served in turn:
/// there the first of every rank come before the second of any, so that each engine turns to its ranks as
/// they want it, and in rotation no two engines turn to one rank at once. So do copies of one stream a GPU:
/// an engine that serves as enqueued would otherwise wait for the last copy of one rank before the first of
/// the next.
template <class Visit>
void for_each_wanted(const Transfers& transfers, const std::vector<std::vector<int>>& peers, Wanting wanting,
                     Visit&& visit) {
    const bool receivers = wanting == Wanting::receivers, single = transfers.options().single_stream;
    const bool ranks_execute = receivers == (transfers.direction() == Direction::pull);
    const bool by_rank = transfers.served_in_turn() ? ranks_execute && !single : !(receivers && single);
    const auto of = [&](int rank) -> const auto& {
        return peers[static_cast<std::size_t>(rank)];
    };
    if (by_rank) {
        for (int rank = 0; rank < transfers.ranks(); ++rank)
            for (const int peer : of(rank)) visit(rank, peer);
        return;
    }
    for (std::size_t place = 0; place < peers.front().size(); ++place)
        for (int rank = 0; rank < transfers.ranks(); ++rank) visit(rank, of(rank)[place]);
}

/// Transfers::peers of every rank.
inline std::vector<std::vector<int>> peers_of_all(const Transfers& transfers) {
    std::vector<std::vector<int>> peers;
    for (int rank = 0; rank < transfers.ranks(); ++rank) peers.push_back(transfers.peers(rank));
    return peers;
}

}  // namespace overlap
