#include <algorithm>
#include <array>

#include "sim/schedules/operator_list.hpp"

namespace overlap {
namespace {

/// One operator of each rank, and the collective of its result.
struct Producer {
    Work work;
    CollectiveWork collective;
};

Producer producer_of(const Workload& workload, int ranks) {
    if (const Pair* pair = workload.pair())
        return {pair->gemm, {pair->collective, pair->operand(ranks), pair->operand_type()}};
    const auto& operators = std::get<std::vector<Operator>>(workload.content);
    return {compute_work(operators.front()), std::get<CollectiveWork>(operators.back().work)};
}

// A fused computation and collective (arXiv 2305.06942). One persistent kernel a rank, whose work-groups
// store their results straight into the memory of the peer that they are for, as they end; those for other
// ranks come first, in turn over the peers, the own ones last. To other nodes a work-group has the NIC write.
// In a reduction the owner adds the parts, and an all-reduce stores the sum at everybody's. Work-groups are
// taken in `chunks` groups for each destination. Ignored: what the registers of communication cost the kernel
// in occupancy (12.5 % there), and that sums are work-groups of the same kernel (here each is launched).
class WorkGroupFused final : public Schedule {
public:
    TaskGraph build(const Workload& workload, const Topology& topology,
                    const ScheduleParams& params) const override {
        TaskGraph graph;
        Fused(producer_of(workload, topology.gpus()), topology, params, graph).build();
        return graph;
    }

private:
    class Fused {
    public:
        Fused(Producer producer, const Topology& topology, const ScheduleParams& params, TaskGraph& graph)
            : graph_(graph),
              topology_(topology),
              producer_(std::move(producer)),
              chunks_(params.chunks),
              stores_(graph, topology, stored(params.transfers)),
              puts_(graph, topology, params.transfers) {}

        void build() {
            const int ranks = topology_.gpus();
            for (int rank = 0; rank < ranks; ++rank)
                kernels_.push_back(graph_.add(Task{producer_.work, rank, compute_stream}, {}));
            if (ranks == 1) return;
            const std::vector<std::vector<std::vector<TaskId>>> parts = send_parts();
            if (producer_.collective.kind == CollectiveKind::all_to_all) return;
            for (int owner = 0; owner < ranks; ++owner)
                for (int chunk = 0; chunk < chunks_; ++chunk)
                    add_up(owner, chunk,
                           parts[static_cast<std::size_t>(owner)][static_cast<std::size_t>(chunk)]);
        }

    private:
        static TransferOptions stored(TransferOptions options) {
            options.direction = Direction::push;
            options.stored = true;
            return options;
        }

        Bytes piece() const {
            return producer_.collective.operand / (static_cast<double>(topology_.gpus()) * chunks_);
        }

        /// Share of the kernel that is done with number `place` of its P · C pieces.
        double made(int place) const {
            return static_cast<double>(place + 1) / (static_cast<double>(topology_.gpus()) * chunks_);
        }

        TaskId send(int from, int to, int shard, int chunk, std::span<const TaskId> after) {
            Transfers& transfers = topology_.node_of(from) == topology_.node_of(to) ? stores_ : puts_;
            return transfers.copy(from, to, {piece(), piece(), shard, chunk}, after);
        }

        /// By owner and chunk: the parts that come from its peers.
        std::vector<std::vector<std::vector<TaskId>>> send_parts() {
            const auto ranks = static_cast<std::size_t>(topology_.gpus());
            std::vector<std::vector<std::vector<TaskId>>> parts(
                ranks, std::vector<std::vector<TaskId>>(static_cast<std::size_t>(chunks_)));
            for (int rank = 0; rank < topology_.gpus(); ++rank) {
                const std::vector<int> peers = stores_.peers(rank);
                int place = 0;
                for (int chunk = 0; chunk < chunks_; ++chunk)
                    for (const int owner : peers) {
                        const TaskId copy = send(rank, owner, owner, chunk, {});
                        graph_.add_edge({kernel(rank), copy, made(place++)});
                        parts[static_cast<std::size_t>(owner)][static_cast<std::size_t>(chunk)].push_back(
                            copy);
                    }
            }
            return parts;
        }

        void add_up(int owner, int chunk, std::span<const TaskId> parts) {
            const TaskId sum = graph_.add(
                Task{ReduceWork{piece(), topology_.gpus()}, owner, local_stream, owner, chunk}, parts);
            graph_.add_edge(
                {kernel(owner), sum, std::min(made((topology_.gpus() - 1) * chunks_ + chunk), 1.0)});
            if (producer_.collective.kind == CollectiveKind::reduce_scatter) return;
            for (const int peer : stores_.peers(owner)) send(owner, peer, owner, chunk, std::array{sum});
        }

        TaskId kernel(int rank) const { return kernels_[static_cast<std::size_t>(rank)]; }

        TaskGraph& graph_;
        const Topology& topology_;
        Producer producer_;
        int chunks_;
        Transfers stores_, puts_;
        std::vector<TaskId> kernels_;  ///< by rank
    };
};

}  // namespace

std::unique_ptr<Schedule> make_work_group_fused() {
    return std::make_unique<WorkGroupFused>();
}

}  // namespace overlap
