#include <algorithm>
#include <array>

#include "sim/schedules/operator_list.hpp"

namespace overlap {
namespace {

template <class Tasks>
auto& of(Tasks& tasks, int rank) {
    return tasks[static_cast<std::size_t>(rank)];
}

// A fused computation and collective (arXiv 2305.06942). One persistent kernel a rank; as its
// work-groups end, they store their results straight into the destination peer's memory. Results for
// other ranks come first, alternating between the peers, own results last. To other nodes a work-group
// has the NIC write. In a reduction the owner adds the parts, and an all-reduce stores the sum at all
// ranks. Work-groups are handled in `chunks` groups for each destination. In a list of operators all
// suitable pairs are fused; other operators run as soon as their data are complete. Ignored: the
// occupancy that the registers of communication cost (12.5 % in the paper); sums are separate kernels
// here, not work-groups of the same kernel.
class FusedKernel {
public:
    FusedKernel(const Work& computation, const CollectiveWork& collective, const Topology& topology,
                const ScheduleParams& params, TaskGraph& graph)
        : graph_(graph),
          topology_(topology),
          computation_(computation),
          collective_(collective),
          chunks_(params.chunks),
          stores_(graph, topology, pushed(params.transfers, true)),
          puts_(graph, topology, pushed(params.transfers, false)) {}

    FusedEnds build(const RankTasks& ready) {
        for (int rank = 0; rank < topology_.gpus(); ++rank)
            kernels_.push_back(
                std::vector{graph_.add(Task{computation_, rank, compute_stream}, of(ready, rank))});
        given_ = kernels_;
        const auto ranks = static_cast<std::size_t>(topology_.gpus());
        graph_.reserve(graph_.size() + ranks * (ranks - 1) * static_cast<std::size_t>(chunks_), 0);
        if (topology_.gpus() == 1) return {kernels_, given_};
        const std::vector<std::vector<std::vector<TaskId>>> parts = send_parts();
        for (int owner = 0; owner < topology_.gpus(); ++owner)
            for (int chunk = 0; chunk < chunks_; ++chunk) {
                const auto& arrived = parts[static_cast<std::size_t>(owner)][static_cast<std::size_t>(chunk)];
                if (collective_.kind == CollectiveKind::all_to_all)
                    of(given_, owner).insert(of(given_, owner).end(), arrived.begin(), arrived.end());
                else
                    add_up(owner, chunk, arrived);
            }
        return {kernels_, given_};
    }

private:
    static TransferOptions pushed(TransferOptions options, bool stored) {
        options.direction = Direction::push;
        options.stored = stored;
        return options;
    }

    Bytes piece() const { return collective_.operand / (static_cast<double>(topology_.gpus()) * chunks_); }

    /// Fraction of the kernel that is done after piece `place` of its P · C pieces.
    double made(int place) const {
        return static_cast<double>(place + 1) / (static_cast<double>(topology_.gpus()) * chunks_);
    }

    TaskId send(int from, int to, int shard, int chunk, std::span<const TaskId> after) {
        Transfers& transfers = topology_.node_of(from) == topology_.node_of(to) ? stores_ : puts_;
        return transfers.copy(from, to, {piece(), piece(), shard, chunk}, after);
    }

    /// The parts from an owner's peers, for each owner and chunk.
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
                    parts[static_cast<std::size_t>(owner)][static_cast<std::size_t>(chunk)].push_back(copy);
                }
        }
        return parts;
    }

    void add_up(int owner, int chunk, std::span<const TaskId> parts) {
        const TaskId sum =
            graph_.add(Task{ReduceWork{piece(), topology_.gpus()}, owner, local_stream, owner, chunk}, parts);
        graph_.add_edge({kernel(owner), sum, std::min(made((topology_.gpus() - 1) * chunks_ + chunk), 1.0)});
        of(given_, owner).push_back(sum);
        if (collective_.kind == CollectiveKind::reduce_scatter) return;
        for (const int peer : stores_.peers(owner))
            of(given_, peer).push_back(send(owner, peer, owner, chunk, std::array{sum}));
    }

    TaskId kernel(int rank) const { return of(kernels_, rank).front(); }

    TaskGraph& graph_;
    const Topology& topology_;
    Work computation_;
    CollectiveWork collective_;
    int chunks_;
    Transfers stores_, puts_;
    RankTasks kernels_, given_;
};

}  // namespace

void add_work_group_fused(const Workload& workload, const Topology& topology, const ScheduleParams& params,
                          TaskGraph& graph) {
    const auto fuse = [&](const Work& computation, const CollectiveWork& collective, const RankTasks& ready) {
        return FusedKernel(computation, collective, topology, params, graph).build(ready);
    };
    add_operators(workload, topology, params, false, graph, fuse);
}

}  // namespace overlap
