#include <array>

#include "sim/schedules/pieces.hpp"

namespace overlap {
namespace {

// One GEMM a rank, whose thread blocks go through the pieces in a fixed order and poll a flag for each, as in
// Flux (arXiv 2406.06858): the own shard first and then the pieces in the order in which they are fetched;
// before a reduction the other way round, and a piece is sent as soon as the GEMM has set its flag; results
// that are gathered go to all peers as they are finished.
class FlagGated final : public Schedule {
public:
    TaskGraph build(const Workload& workload, const Topology& topology,
                    const ScheduleParams& params) const override {
        const Pair& pair = *workload.pair();
        const Pieces pieces(pair, topology.gpus(), params.chunks, CommShape::one_d);
        TaskGraph graph;
        Transfers transfers(graph, topology, params.transfers);
        if (pieces.collective_first())
            gather_then_multiply(pieces, transfers, params.gemm_cus);
        else
            multiply_then_send(pieces, transfers, params.gemm_cus);
        return graph;
    }

private:
    struct Piece {
        int shard, chunk;
        double before, done;  ///< share of the GEMM that comes before it, and with it
    };

    /// The pieces that `rank` communicates, in the order in which its GEMM takes them, the first after `rows`
    /// rows: those of the other ranks, or, where results are gathered, its own.
    static std::vector<Piece> communicated(const Pieces& pieces, const Transfers& transfers, int rank,
                                           std::int64_t rows) {
        std::vector<Piece> result;
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

    static TaskId gemm(const Pieces& pieces, int rank, int cus, TaskGraph& graph) {
        Task task{pieces.pair().gemm, rank, compute_stream};
        task.gemm_cus = cus;
        return graph.add(task, {});
    }

    static void gather_then_multiply(const Pieces& pieces, Transfers& transfers, int gemm_cus) {
        for (int rank = 0; rank < pieces.ranks(); ++rank) {
            std::vector<Edge> gates;
            const std::int64_t own = pieces.gemm(std::array{rank}, -1).m;
            for (const Piece& piece : communicated(pieces, transfers, rank, own)) {
                const TaskId copy =
                    transfers.copy(piece.shard, rank, pieces.payload(piece.shard, piece.chunk));
                gates.push_back({copy, 0, 1, piece.before});
            }
            const TaskId whole = gemm(pieces, rank, gemm_cus, transfers.graph());
            for (Edge& gate : gates) {
                gate.successor = whole;
                transfers.graph().add_edge(gate);
            }
        }
    }

    static void multiply_then_send(const Pieces& pieces, Transfers& transfers, int gemm_cus) {
        std::vector<std::vector<std::vector<TaskId>>> parts;  // by owner and chunk
        std::vector<TaskId> gemms;
        for (int rank = 0; rank < pieces.ranks(); ++rank)
            gemms.push_back(gemm(pieces, rank, gemm_cus, transfers.graph()));
        for (const TaskId own : gemms)
            parts.emplace_back(static_cast<std::size_t>(pieces.chunks()), std::vector<TaskId>{own});
        const auto send = [&](int rank, int to, const Piece& piece) {
            const TaskId copy = transfers.copy(rank, to, pieces.payload(piece.shard, piece.chunk));
            transfers.graph().add_edge({gemms[static_cast<std::size_t>(rank)], copy, piece.done});
            parts[static_cast<std::size_t>(to)][static_cast<std::size_t>(piece.chunk)].push_back(copy);
        };
        for (int rank = 0; rank < pieces.ranks(); ++rank)
            for (const Piece& piece : communicated(pieces, transfers, rank, 0)) {
                if (piece.shard != rank)
                    send(rank, piece.shard, piece);
                else
                    for (const int peer : transfers.peers(rank)) send(rank, peer, piece);
            }
        if (!pieces.reduces() || pieces.ranks() == 1) return;
        for (int owner = 0; owner < pieces.ranks(); ++owner)
            for (int chunk = 0; chunk < pieces.chunks(); ++chunk)
                add_reduction(pieces, transfers, owner, chunk,
                              parts[static_cast<std::size_t>(owner)][static_cast<std::size_t>(chunk)]);
    }
};

}  // namespace

std::unique_ptr<Schedule> make_flag_gated() {
    return std::make_unique<FlagGated>();
}

}  // namespace overlap
