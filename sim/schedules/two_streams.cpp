#include "sim/schedules/pieces.hpp"

namespace overlap {
namespace {

/// Read and written by a kernel that sets and polls the flags of a barrier; one thread block's work.
constexpr Bytes of_flags{2048};

// What torch.ops.symm_mem.fused_all_gather_matmul and fused_matmul_reduce_scatter of PyTorch 2.11 enqueue on each rank
// (torch/distributed/_symmetric_memory; traces/h200_2/profiler_symm_mem shows the first): two streams that alternate the
// shards, so that a GEMM of one fills the last wave of the other's. No kernel copies between GPUs.
//
//   all-gather      compute: barrier, copy of the own shard into symmetric memory, barrier, GEMM of it;
//                   then of the peers r+1, r+2, … in turn on the second stream and on compute: copy, GEMM;
//                   copy of the own shard into the gathered operand (`scatter`), join, barrier
//   reduce-scatter  barrier; for the shards r+1, r+2, … in turn on the second stream and on compute: GEMM, barrier, copy
//                   of the own shard's part from the peer r−1, r−2, …, barrier; GEMM of the own shard on compute, join,
//                   barrier, sum of all parts. A kernel that sleeps for 100 cycles goes before the first GEMM on compute, so that
//                   the second stream's GEMM, whose result a peer waits for, gets the units first
constexpr int second_stream = local_stream;

class TwoStreamGraph {
public:
    TwoStreamGraph(Pieces pieces, bool copies_out, TaskGraph& graph)
        : pieces_(std::move(pieces)), ranks_(pieces_.ranks()), copies_out_(copies_out), graph_(graph) {}

    void build() {
        if (ranks_ == 1)
            gemm(0, compute_stream, 0);
        else if (pieces_.collective_first())
            gather();
        else
            scatter();
    }

private:
    int peer(int rank, int distance) const { return (rank + distance + ranks_) % ranks_; }
    static int stream_of(int step) { return step % 2 == 0 ? compute_stream : second_stream; }
    Bytes shard_bytes(int shard) const { return pieces_.payload(shard, -1).bytes; }

    /// Adds a task of every rank.
    template <class Make>
    std::vector<TaskId> each(Make&& make) {
        std::vector<TaskId> tasks;
        for (int rank = 0; rank < ranks_; ++rank) tasks.push_back(make(rank));
        return tasks;
    }

    TaskId add(int rank, int stream, Work work, int shard, std::span<const TaskId> after = {}) {
        return graph_.add({.work = std::move(work), .gpu = rank, .stream = stream, .shard = shard}, after);
    }
    TaskId gemm(int rank, int stream, int shard, std::span<const TaskId> after = {}) {
        return add(rank, stream, pieces_.gemm(std::span(&shard, 1), -1), shard, after);
    }
    TaskId local_copy(int rank, int stream) {
        return add(rank, stream, LocalCopyWork{shard_bytes(rank), shard_bytes(rank)}, rank);
    }
    TaskId pull(int rank, int stream, int from, int shard, std::span<const TaskId> after = {}) {
        const Bytes bytes = shard_bytes(shard);
        return add(rank, stream, CopyWork{.src = from, .dst = rank, .bytes = bytes, .run = bytes}, shard,
                   after);
    }

    /// Every rank sets its flags, then waits for those of all others. `joined`: a task of another stream that
    /// rank r waits for first, or none.
    std::vector<TaskId> barrier(int stream, const std::vector<TaskId>& joined = {}) {
        const auto arrivals = each([&](int rank) {
            const auto after = joined.empty() ? std::span<const TaskId>()
                                              : std::span(&joined[static_cast<std::size_t>(rank)], 1);
            return add(rank, stream, MemoryBoundWork{of_flags, of_flags}, -1, after);
        });
        return each([&](int rank) {
            const TaskId wait = graph_.add({.work = MemoryBoundWork{of_flags, of_flags},
                                            .gpu = rank,
                                            .stream = stream,
                                            .continues = true});
            for (int other = 0; other < ranks_; ++other)
                if (other != rank) graph_.add_edge({arrivals[static_cast<std::size_t>(other)], wait, 1, 0.5});
            return wait;
        });
    }

    /// torch.cuda._sleep(100): as long as it takes to launch a kernel.
    void sleep() {
        each([&](int rank) { return add(rank, compute_stream, MemoryBoundWork{of_flags, of_flags}, -1); });
    }

    void gather() {
        barrier(compute_stream);
        each([&](int rank) { return local_copy(rank, compute_stream); });
        const auto ready = barrier(compute_stream);
        each([&](int rank) { return gemm(rank, compute_stream, rank); });
        std::vector<TaskId> last;  // of the second stream
        for (int step = 1; step < ranks_; ++step) {
            each([&](int rank) {
                const int from = peer(rank, step);
                const auto after = step == 1 ? std::span(&ready[static_cast<std::size_t>(rank)], 1)
                                             : std::span<const TaskId>();
                return pull(rank, stream_of(step), from, from, after);
            });
            auto gemms = each([&](int rank) { return gemm(rank, stream_of(step), peer(rank, step)); });
            if (stream_of(step) == second_stream) last = std::move(gemms);
        }
        if (copies_out_) {
            auto copies = each([&](int rank) { return local_copy(rank, stream_of(ranks_)); });
            if (stream_of(ranks_) == second_stream) last = std::move(copies);
        }
        barrier(compute_stream, last);
    }

    void scatter() {
        const auto ready = barrier(compute_stream);
        std::vector<TaskId> last;
        for (int step = 1; step < ranks_; ++step) {
            const int stream = stream_of(step);
            if (step == 2) sleep();
            each([&](int rank) {
                const auto after = step == 1 ? std::span(&ready[static_cast<std::size_t>(rank)], 1)
                                             : std::span<const TaskId>();
                return gemm(rank, stream, peer(rank, step), after);
            });
            barrier(stream);
            each([&](int rank) { return pull(rank, stream, peer(rank, -step), rank); });
            auto read = barrier(stream);
            if (stream == second_stream) last = std::move(read);
        }
        if (ranks_ == 2) sleep();
        each([&](int rank) { return gemm(rank, compute_stream, rank); });
        barrier(compute_stream, last);
        each([&](int rank) {
            return add(rank, compute_stream,
                       ReduceWork{.bytes = shard_bytes(rank), .parts = ranks_, .by_framework = true}, rank);
        });
    }

    Pieces pieces_;
    int ranks_;
    bool copies_out_;
    TaskGraph& graph_;
};

}  // namespace

void add_two_streams(const Workload& workload, const Topology& topology, const ScheduleParams& params,
                     TaskGraph& graph) {
    TwoStreamGraph({*workload.pair(), topology.gpus(), 1, CommShape::one_d}, params.scatter, graph).build();
}

}  // namespace overlap
