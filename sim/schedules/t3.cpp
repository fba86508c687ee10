#include <algorithm>
#include <array>

#include "sim/collectives/collective_algorithm.hpp"
#include "sim/schedules/pieces.hpp"
#include "sim/topology/device_dma.hpp"

namespace overlap {
namespace {

// T3, transparent tracking and triggering (arXiv 2401.16677). One GEMM a rank goes through the shards in the
// order of a ring reduce-scatter, staggered from rank to rank: the rank at position i of the ring computes
// the shards of positions i−1, i−2, … and its own shard last. It stores the first one straight into its
// neighbour's memory. Of each further shard, hardware sends a chunk to the neighbour as soon as the GEMM has
// stored it and the partial sum of the rank before has arrived, by commands queued in advance if the DMA
// engines support that. The memory at the destination adds arriving data; if it can't, a kernel does. An
// all-reduce then gathers the sums around the ring, as in the paper, after a rank's last sum.
class T3Graph {
public:
    T3Graph(const Pair& pair, const Topology& topology, const ScheduleParams& params, TaskGraph& graph)
        : graph_(graph),
          pieces_(pair, topology.gpus(), params.chunks, CommShape::one_d),
          adds_(topology.device().near_memory == NearMemory::add),
          stores_(graph, topology, options(topology, params, true)),
          sends_(graph, topology, options(topology, params, false)),
          gathers_(graph, topology, params.transfers),
          ring_(topology.ring()) {
        for (std::size_t i = 0; i < 2 * ring_.size(); ++i)
            rows_before_.push_back(rows_before_.back() + rows(ring_[i % ring_.size()], -1));
        for (int shard = 0; shard < pieces_.ranks(); ++shard)
            for (int chunk = 0; chunk < pieces_.chunks(); ++chunk)
                rows_through_.push_back(rows(shard, chunk) + (chunk == 0 ? 0 : rows_through_.back()));
    }

    void build() {
        const auto ranks = static_cast<std::size_t>(pieces_.ranks());
        graph_.reserve(pieces_.transfers() + ranks, pieces_.transfers());
        for (std::size_t at = 0; at < ranks; ++at)
            gemms_.push_back(graph_.add(Task{pieces_.pair().gemm, ring_[at], compute_stream}, {}));
        arrived_.assign(ranks, std::vector<TaskId>(static_cast<std::size_t>(pieces_.chunks())));
        for (std::size_t step = 1; step < ranks; ++step) send(step);
        if (pieces_.pair().collective == CollectiveKind::all_reduce && ranks > 1) gather();
    }

private:
    static TransferOptions options(const Topology& topology, const ScheduleParams& params, bool stored) {
        TransferOptions options = params.transfers;
        options.direction = Direction::push;
        options.stored = stored;
        options.added = topology.device().near_memory == NearMemory::add;
        options.prelaunch =
            !stored && options.agent == Agent::dma && topology.device().dma->commands.has_value();
        return options;
    }

    std::int64_t rows(int shard, int chunk) const { return pieces_.gemm(std::array{shard}, chunk).m; }

    /// Owner of the shard that the rank at `at` sends at `step`: that many positions back.
    int shard_of(std::size_t at, std::size_t step) const {
        return ring_[(at + ring_.size() - step) % ring_.size()];
    }

    /// Fraction of the GEMM at `at` that is done after chunk `chunk` of the shard sent at `step`.
    double made(std::size_t at, std::size_t step, int chunk) const {
        const std::size_t end = at + ring_.size();
        const std::size_t shard = static_cast<std::size_t>(shard_of(at, step)),
                          chunks = static_cast<std::size_t>(pieces_.chunks());
        const std::int64_t stored = rows_before_[end] - rows_before_[end - step + 1] +
                                    rows_through_[shard * chunks + static_cast<std::size_t>(chunk)];
        return static_cast<double>(stored) / static_cast<double>(pieces_.pair().gemm.m);
    }

    /// The sends of all ranks in a step; from the second step on, each waits for the
    /// arrivals of the step before.
    void send(std::size_t step) {
        const std::size_t ranks = ring_.size();
        std::vector<std::vector<TaskId>> came = arrived_;
        for (std::size_t at = 0; at < ranks; ++at)
            for (int chunk = 0; chunk < pieces_.chunks(); ++chunk) {
                const auto c = static_cast<std::size_t>(chunk);
                const std::size_t next = (at + 1) % ranks;
                const int shard = shard_of(at, step);
                std::vector<TaskId> after;
                if (step > 1) after.push_back(arrived_[at][c]);
                Transfers& transfers = step == 1 ? stores_ : sends_;
                const TaskId copy =
                    transfers.copy(ring_[at], ring_[next], pieces_.payload(shard, chunk), after);
                graph_.add_edge({gemms_[at], copy, std::min(made(at, step, chunk), 1.0)});
                came[next][c] = adds_ ? copy : add_by_kernel(next, step + 1, shard, chunk, copy);
            }
        arrived_ = std::move(came);
    }

    /// Sum of the arrived chunk at `at` and the rank's own part, to be sent at `step` or kept at the end.
    TaskId add_by_kernel(std::size_t at, std::size_t step, int shard, int chunk, TaskId copy) {
        const ReduceWork sum{pieces_.payload(shard, chunk).bytes, 2};
        const TaskId added = graph_.add(Task{sum, ring_[at], local_stream, shard, chunk}, std::array{copy});
        graph_.add_edge({gemms_[at], added, std::min(made(at, step, chunk), 1.0)});
        return added;
    }

    void gather() {
        const Pair& pair = pieces_.pair();
        RankTasks ready(ring_.size());
        for (std::size_t at = 0; at < ring_.size(); ++at) {
            std::vector<TaskId>& sums = ready[static_cast<std::size_t>(ring_[at])];
            sums = arrived_[at];
            sums.push_back(gemms_[at]);
        }
        collective_algorithm("ring").build(
            {CollectiveKind::all_gather, pair.operand(pieces_.ranks()), pair.operand_type()}, ready,
            gathers_);
    }

    TaskGraph& graph_;
    Pieces pieces_;
    bool adds_;
    Transfers stores_, sends_, gathers_;
    const std::vector<int>& ring_;
    std::vector<std::int64_t> rows_before_{0};  ///< of the shards before a position, twice around the ring
    std::vector<std::int64_t> rows_through_;    ///< of a shard's chunks up to one of them, by shard and chunk
    std::vector<TaskId> gemms_;                 ///< by position in the ring
    std::vector<std::vector<TaskId>> arrived_;  ///< the last step's, by position and chunk
};

}  // namespace

void add_t3(const Workload& workload, const Topology& topology, const ScheduleParams& params,
            TaskGraph& graph) {
    T3Graph(*workload.pair(), topology, params, graph).build();
}

}  // namespace overlap
