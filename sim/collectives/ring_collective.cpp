#include "sim/collectives/collective_algorithm.hpp"

namespace overlap {
namespace {

// Step s: the rank at position i of the ring receives the shard of position i−s from its left neighbour,
// which received it in the step before.
RankTasks ring_gather(Bytes piece, const RankTasks& ready, Transfers& transfers) {
    const auto& ring = transfers.ring();
    const std::size_t ranks = ring.size();
    RankTasks done = ready;
    std::vector<std::vector<TaskId>> newest(
        ranks);  // by position: tasks after which the shard to forward is complete
    for (std::size_t i = 0; i < ranks; ++i) newest[i] = ready[static_cast<std::size_t>(ring[i])];
    for (std::size_t step = 1; step < ranks; ++step) {
        std::vector<std::vector<TaskId>> arrived(ranks);
        for (std::size_t i = 0; i < ranks; ++i) {
            const std::size_t left = (i + ranks - 1) % ranks;
            const int shard = ring[(i + ranks - step) % ranks];
            arrived[i] = {transfers.copy_alone(ring[left], ring[i], {piece, piece, shard, -1}, newest[left])};
            done[static_cast<std::size_t>(ring[i])].push_back(arrived[i][0]);
        }
        newest = std::move(arrived);
    }
    return done;
}

// Step s: position i receives the partial sum of the shard of position i−s−1 from its left neighbour and
// adds its own part. After P−1 steps it holds the whole sum of its own shard.
RankTasks ring_reduce(Bytes piece, const RankTasks& ready, Transfers& transfers) {
    const auto& ring = transfers.ring();
    const std::size_t ranks = ring.size();
    std::vector<std::vector<TaskId>> partial(ranks);
    for (std::size_t i = 0; i < ranks; ++i) partial[i] = ready[static_cast<std::size_t>(ring[i])];
    for (std::size_t step = 1; step < ranks; ++step) {
        std::vector<std::vector<TaskId>> sum(ranks);
        for (std::size_t i = 0; i < ranks; ++i) {
            const std::size_t left = (i + ranks - 1) % ranks;
            const int shard = ring[(i + 2 * ranks - step - 1) % ranks];
            std::vector<TaskId> parts = ready[static_cast<std::size_t>(ring[i])];
            parts.push_back(
                transfers.copy_alone(ring[left], ring[i], {piece, piece, shard, -1}, partial[left]));
            sum[i] = {transfers.add(Task{ReduceWork{piece, 2}, ring[i], local_stream, shard, -1}, parts)};
        }
        partial = std::move(sum);
    }
    RankTasks done(ranks);
    for (std::size_t i = 0; i < ranks; ++i) done[static_cast<std::size_t>(ring[i])] = partial[i];
    return done;
}

}  // namespace

RankTasks ring_collective(const CollectiveWork& work, const RankTasks& ready, Transfers& transfers) {
    if (transfers.ranks() == 1) return ready;
    const Bytes piece = work.operand / transfers.ranks();
    if (work.kind == CollectiveKind::all_gather) return ring_gather(piece, ready, transfers);
    RankTasks reduced = ring_reduce(piece, ready, transfers);
    return work.kind == CollectiveKind::all_reduce ? ring_gather(piece, reduced, transfers) : reduced;
}

}  // namespace overlap
