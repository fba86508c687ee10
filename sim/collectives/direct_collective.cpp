#include "sim/collectives/call_order.hpp"
#include "sim/collectives/collective_algorithm.hpp"

namespace overlap {
namespace {

// All copies of a GPU on one engine, which signals only the end of the last copy.
RankTasks exchange_back_to_back(Bytes piece, const RankTasks& ready, Transfers& transfers, bool to_owner) {
    const bool pull = transfers.direction() == Direction::pull;
    RankTasks done = ready;
    for (int gpu = 0; gpu < transfers.ranks(); ++gpu) {
        const std::vector<int> peers = transfers.peers(gpu);
        const int batch = static_cast<int>(peers.size());
        TaskId last = 0;
        for (int place = 0; place < batch; ++place) {
            const int peer = peers[static_cast<std::size_t>(place)];
            const int src = pull ? peer : gpu, dst = pull ? gpu : peer;
            last = transfers.copy_back_to_back(src, dst, {piece, piece, to_owner ? dst : src, -1}, place,
                                               batch, ready[static_cast<std::size_t>(src)]);
            if (pull) done[static_cast<std::size_t>(gpu)].push_back(last);
        }
        if (pull) continue;
        for (const int peer : peers) done[static_cast<std::size_t>(peer)].push_back(last);
    }
    return done;
}

// Every rank gets `payload_of(src, dst)` from every peer.
template <class PayloadOf>
RankTasks exchange(const RankTasks& ready, Transfers& transfers, PayloadOf&& payload_of) {
    RankTasks done = ready;
    const BuiltRanks& built = transfers.built();
    const auto peers = [&](int gpu) { return transfers.peers(gpu); };
    for_each_copy(transfers, Wanting::receivers, peers, [&](int src, int dst) {
        built.give(done, dst, transfers.copy(src, dst, payload_of(src, dst), built.of(ready, src)));
    });
    return done;
}

// Every rank gets one piece from every peer: the peer's shard, or, `to_owner`, the peer's part
// of the rank's own shard.
RankTasks direct_exchange(Bytes piece, const RankTasks& ready, Transfers& transfers, bool to_owner = false) {
    if (transfers.commands() == DmaCommands::back_to_back)
        return exchange_back_to_back(piece, ready, transfers, to_owner);
    return exchange(ready, transfers, [&](int src, int dst) {
        return Payload{piece, piece, to_owner ? dst : src, -1};
    });
}

RankTasks write_flags(const RankTasks& ready, Transfers& transfers) {
    constexpr Bytes flag(4);
    return exchange(ready, transfers, [&](int, int) { return Payload{flag, flag}; });
}

// One broadcast for two peers each; an odd last peer gets a copy.
RankTasks broadcast_pieces(Bytes piece, const RankTasks& ready, Transfers& transfers) {
    RankTasks done = ready;
    for (int rank = 0; rank < transfers.ranks(); ++rank) {
        const std::vector<int> peers = transfers.peers(rank);
        const Payload shard{piece, piece, rank, -1};
        const auto& after = ready[static_cast<std::size_t>(rank)];
        for (std::size_t i = 0; i < peers.size(); i += 2) {
            const bool pair = i + 1 < peers.size();
            const TaskId task = pair ? transfers.broadcast(rank, peers[i], peers[i + 1], shard, after)
                                     : transfers.copy(rank, peers[i], shard, after);
            for (std::size_t j = i; j < peers.size() && j < i + 2; ++j)
                done[static_cast<std::size_t>(peers[j])].push_back(task);
        }
    }
    return done;
}

// Each pair swaps once, executed by the rank from which the other is nearer in
// rotation: half of a rank's pairs.
RankTasks swap_pieces(Bytes piece, const RankTasks& ready, Transfers& transfers) {
    RankTasks done = ready;
    const int ranks = transfers.ranks();
    for (int rank = 0; rank < ranks; ++rank) {
        for (const int peer : transfers.peers(rank)) {
            const int distance = (peer - rank + ranks) % ranks;
            if (2 * distance > ranks || (2 * distance == ranks && peer < rank)) continue;
            std::vector<TaskId> after = ready[static_cast<std::size_t>(rank)];
            const auto& others = ready[static_cast<std::size_t>(peer)];
            after.insert(after.end(), others.begin(), others.end());
            const TaskId task = transfers.swap(rank, peer, {piece, piece, -1, -1}, after);
            for (const int end : {rank, peer}) done[static_cast<std::size_t>(end)].push_back(task);
        }
    }
    return done;
}

RankTasks direct_reduce_scatter(Bytes piece, const RankTasks& ready, Transfers& transfers) {
    RankTasks parts = direct_exchange(piece, ready, transfers, true);
    if (transfers.ranks() == 1) return parts;
    for (const int rank : transfers.built().ranks()) {
        auto& own = parts[transfers.built().place(rank)];
        own = {transfers.add(Task{ReduceWork{piece, transfers.ranks()}, rank, local_stream, rank, -1}, own)};
    }
    return parts;
}

}  // namespace

RankTasks direct_collective(const CollectiveWork& work, const RankTasks& ready, Transfers& transfers) {
    const Bytes piece = work.operand / transfers.ranks();
    switch (work.kind) {
        case CollectiveKind::all_gather:
            if (transfers.commands() == DmaCommands::broadcast)
                return broadcast_pieces(piece, ready, transfers);
            return direct_exchange(piece, ready, transfers);
        case CollectiveKind::all_to_all:
            if (transfers.commands() == DmaCommands::swap) return swap_pieces(piece, ready, transfers);
            return direct_exchange(piece, ready, transfers);
        case CollectiveKind::reduce_scatter:
            return direct_reduce_scatter(piece, ready, transfers);
        case CollectiveKind::all_reduce:
            return direct_exchange(piece, direct_reduce_scatter(piece, ready, transfers), transfers);
    }
    return ready;
}

// A rank writes a flag to each peer when its own operand is there, and another one behind the peer's piece, on the same
// stream.
RankTasks zero_cta_collective(const CollectiveWork& work, const RankTasks& ready, Transfers& transfers) {
    const RankTasks met = write_flags(ready, transfers);
    RankTasks done = direct_exchange(work.operand / transfers.ranks(), met, transfers);
    const RankTasks flags = write_flags(met, transfers);
    for (std::size_t place = 0; place < done.size(); ++place)
        done[place].insert(done[place].end(),
                           flags[place].begin() + static_cast<std::ptrdiff_t>(met[place].size()),
                           flags[place].end());
    return done;
}

}  // namespace overlap
