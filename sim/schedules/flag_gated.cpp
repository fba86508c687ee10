#include <array>

#include "sim/schedules/pieces.hpp"

namespace overlap {
namespace {

// One GEMM a rank, whose thread blocks go through the pieces in a fixed order and poll a flag for each, as in
// Flux (arXiv 2406.06858): the own shard first and then the pieces in the order in which they are fetched;
// before a reduction the other way round, and a piece is sent as soon as the GEMM has set its flag.
class FlagGated final : public Schedule {
public:
    TaskGraph build(const Workload& workload, const Topology& topology,
                    const ScheduleParams& params) const override {
        const Pair& pair = *workload.pair();
        const Pieces pieces(pair, topology.gpus(), params.chunks, CommShape::one_d);
        TaskGraph graph;
        Transfers transfers(graph, topology, params.transfers);
        if (pieces.collective_first())
            gather_then_multiply(pieces, transfers);
        else
            multiply_then_send(pieces, transfers);
        return graph;
    }

private:
    struct Piece {
        int shard, chunk;
        double share;  ///< of the GEMM that comes before it
    };

    /// The pieces of the other ranks as the GEMM of `rank` takes them, after `done` of it.
    static std::vector<Piece> others(const Pieces& pieces, const Transfers& transfers, int rank,
                                     std::int64_t rows) {
        std::vector<Piece> result;
        const auto all = static_cast<double>(pieces.pair().gemm.m);
        for (int chunk = 0; chunk < pieces.chunks(); ++chunk)
            for (const int shard : transfers.peers(rank)) {
                result.push_back({shard, chunk, static_cast<double>(rows) / all});
                rows += pieces.gemm(std::array{shard}, chunk).m;
            }
        return result;
    }

    static TaskId gemm(const Pieces& pieces, int rank, TaskGraph& graph) {
        return graph.add(Task{pieces.pair().gemm, rank, compute_stream}, {});
    }

    static void gather_then_multiply(const Pieces& pieces, Transfers& transfers) {
        for (int rank = 0; rank < pieces.ranks(); ++rank) {
            std::vector<Edge> gates;
            for (const Piece& piece : others(pieces, transfers, rank, pieces.gemm(std::array{rank}, -1).m)) {
                const TaskId copy =
                    transfers.copy(piece.shard, rank, pieces.payload(piece.shard, piece.chunk));
                gates.push_back({copy, 0, 1, piece.share});
            }
            const TaskId whole = gemm(pieces, rank, transfers.graph());
            for (Edge& gate : gates) {
                gate.successor = whole;
                transfers.graph().add_edge(gate);
            }
        }
    }

    static void multiply_then_send(const Pieces& pieces, Transfers& transfers) {
        std::vector<std::vector<std::vector<TaskId>>> parts;  // by owner and chunk
        std::vector<TaskId> gemms;
        for (int rank = 0; rank < pieces.ranks(); ++rank)
            gemms.push_back(gemm(pieces, rank, transfers.graph()));
        for (const TaskId own : gemms)
            parts.emplace_back(static_cast<std::size_t>(pieces.chunks()), std::vector<TaskId>{own});
        const auto all = static_cast<double>(pieces.pair().gemm.m);
        for (int rank = 0; rank < pieces.ranks(); ++rank)
            for (const Piece& piece : others(pieces, transfers, rank, 0)) {
                const double rows = static_cast<double>(pieces.gemm(std::array{piece.shard}, piece.chunk).m);
                const TaskId copy =
                    transfers.copy(rank, piece.shard, pieces.payload(piece.shard, piece.chunk));
                transfers.graph().add_edge(
                    {gemms[static_cast<std::size_t>(rank)], copy, std::min(piece.share + rows / all, 1.0)});
                parts[static_cast<std::size_t>(piece.shard)][static_cast<std::size_t>(piece.chunk)].push_back(
                    copy);
            }
        if (pieces.pair().collective == CollectiveKind::all_to_all || pieces.ranks() == 1) return;
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
