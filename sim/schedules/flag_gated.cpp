#include <array>

#include "sim/collectives/call_order.hpp"
#include "sim/schedules/pieces.hpp"

namespace overlap {
namespace {

/// A communicated piece, as it lies in its rank's GEMM.
struct GatedPiece {
    int shard, chunk;
    double before, done;  ///< fraction of the GEMM that is done before this piece, and after it
};

/// The pieces that `rank` communicates, in the order in which its GEMM takes them, the first after `rows`
/// rows: chunk by chunk those of the other ranks; if results are gathered, its own.
std::vector<GatedPiece> communicated_pieces(const Pieces& pieces, const Transfers& transfers, int rank,
                                            std::int64_t rows) {
    std::vector<GatedPiece> result;
    const auto all = static_cast<double>(pieces.pair().gemm.m);
    const std::vector<int> shards = pieces.gathers_results() ? std::vector{rank} : transfers.peers(rank);
    for (int chunk = 0; chunk < pieces.chunks(); ++chunk)
        for (const int shard : shards) {
            const std::int64_t before = rows;
            rows += pieces.gemm(std::array{shard}, chunk).m;
            result.push_back({shard, chunk, static_cast<double>(before) / all,
                              std::min(static_cast<double>(rows) / all, 1.0)});
        }
    return result;
}

TaskId gated_gemm(const Pieces& pieces, int rank, int cus, TaskGraph& graph) {
    Task task{pieces.pair().gemm, rank, compute_stream};
    task.gemm_cus = cus;
    task.persistent = true;
    return graph.add(task, {});
}

void gather_for_gates(const Pieces& pieces, Transfers& transfers, int gemm_cus) {
    const std::vector<std::vector<int>> peers = peers_of_all(transfers);
    RankTasks arrivals(static_cast<std::size_t>(pieces.ranks()));  // in the order of a rank's pieces
    for (int chunk = 0; chunk < pieces.chunks(); ++chunk)
        for_each_wanted(transfers, peers, Wanting::receivers, [&](int rank, int peer) {
            arrivals[static_cast<std::size_t>(rank)].push_back(
                transfers.copy(peer, rank, pieces.payload(peer, chunk)));
        });
    for (int rank = 0; rank < pieces.ranks(); ++rank) {
        const TaskId whole = gated_gemm(pieces, rank, gemm_cus, transfers.graph());
        const std::int64_t own = pieces.gemm(std::array{rank}, -1).m;
        auto arrival = arrivals[static_cast<std::size_t>(rank)].begin();
        for (const GatedPiece& piece : communicated_pieces(pieces, transfers, rank, own))
            transfers.graph().add_edge({*arrival++, whole, 1, piece.before});
    }
}

void send_through_gates(const Pieces& pieces, Transfers& transfers, int gemm_cus) {
    const std::vector<std::vector<int>> peers = peers_of_all(transfers);
    RankTasks gemms;
    std::vector<std::vector<GatedPiece>> made;  // by rank
    for (int rank = 0; rank < pieces.ranks(); ++rank) {
        gemms.push_back({gated_gemm(pieces, rank, gemm_cus, transfers.graph())});
        made.push_back(communicated_pieces(pieces, transfers, rank, 0));
    }
    // Each rank's copies are in the order of its pieces; of gathered results, one for each peer.
    std::vector<std::size_t> sent(made.size());
    std::vector<RankTasks> parts(static_cast<std::size_t>(pieces.chunks()), gemms);  // by chunk and owner
    for (int chunk = 0; chunk < pieces.chunks(); ++chunk)
        for_each_wanted(transfers, peers, Wanting::senders, [&](int rank, int to) {
            const int shard = pieces.gathers_results() ? rank : to;
            const auto r = static_cast<std::size_t>(rank);
            const std::size_t place = pieces.gathers_results() ? static_cast<std::size_t>(chunk) : sent[r]++;
            const TaskId copy = transfers.copy(rank, to, pieces.payload(shard, chunk));
            transfers.graph().add_edge({gemms[r][0], copy, made[r][place].done});
            parts[static_cast<std::size_t>(chunk)][static_cast<std::size_t>(to)].push_back(copy);
        });
    if (!pieces.reduces() || pieces.ranks() == 1) return;
    for (int chunk = 0; chunk < pieces.chunks(); ++chunk)
        add_reductions(pieces, transfers, chunk, parts[static_cast<std::size_t>(chunk)]);
}

}  // namespace

// One GEMM a rank whose thread blocks go through the pieces in a fixed order and poll a flag for each, as in
// Flux (arXiv 2406.06858): the own shard first, then the pieces in the order in which they are fetched.
// Before a reduction the order is reversed, and a piece is sent as soon as the GEMM has set its flag.
// Gathered results go to all peers as they are finished.
void add_flag_gated(const Workload& workload, const Topology& topology, const ScheduleParams& params,
                    TaskGraph& graph) {
    const Pieces pieces(*workload.pair(), topology.gpus(), params.chunks, CommShape::one_d);
    Transfers transfers(graph, topology, params.transfers);
    graph.reserve(pieces.transfers() + static_cast<std::size_t>(pieces.ranks()), pieces.transfers());
    if (pieces.collective_first())
        gather_for_gates(pieces, transfers, params.gemm_cus);
    else
        send_through_gates(pieces, transfers, params.gemm_cus);
}

}  // namespace overlap
