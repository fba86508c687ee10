#include "sim/collectives/collective_algorithm.hpp"

namespace overlap {
namespace {

class DirectCollective final : public CollectiveAlgorithm {
public:
    bool handles(CollectiveKind) const override { return true; }

    RankTasks build(const CollectiveWork& work, const RankTasks& ready, Transfers& transfers) const override {
        const Bytes piece = work.operand / transfers.ranks();
        switch (work.kind) {
            case CollectiveKind::all_gather:
            case CollectiveKind::all_to_all:
                return exchange(piece, ready, transfers);
            case CollectiveKind::reduce_scatter:
                return reduce_scatter(piece, ready, transfers);
            case CollectiveKind::all_reduce:
                return exchange(piece, reduce_scatter(piece, ready, transfers), transfers);
        }
        return ready;
    }

private:
    // Every rank gets one piece from every peer: the peer's shard, or, `to_owner`, the peer's part of its
    // own.
    static RankTasks exchange(Bytes piece, const RankTasks& ready, Transfers& transfers,
                              bool to_owner = false) {
        RankTasks done = ready;
        for (int rank = 0; rank < transfers.ranks(); ++rank)
            for (const int peer : transfers.peers(rank))
                done[static_cast<std::size_t>(rank)].push_back(
                    transfers.copy(peer, rank, {piece, piece, to_owner ? rank : peer, -1},
                                   ready[static_cast<std::size_t>(peer)]));
        return done;
    }

    static RankTasks reduce_scatter(Bytes piece, const RankTasks& ready, Transfers& transfers) {
        RankTasks parts = exchange(piece, ready, transfers, true);
        if (transfers.ranks() == 1) return parts;
        for (int rank = 0; rank < transfers.ranks(); ++rank) {
            auto& own = parts[static_cast<std::size_t>(rank)];
            own = {transfers.graph().add(
                Task{ReduceWork{piece, transfers.ranks()}, rank, local_stream, rank, -1}, own)};
        }
        return parts;
    }
};

}  // namespace

std::unique_ptr<CollectiveAlgorithm> make_direct_collective() {
    return std::make_unique<DirectCollective>();
}

}  // namespace overlap
