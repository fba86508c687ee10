#include "sim/collectives/transfers.hpp"

#include <cassert>

#include "sim/topology/device_copy_kernel.hpp"
#include "sim/topology/device_dma.hpp"

namespace overlap {

Task in_whole(Task task, const Topology& group) {
    if (group.group().is_all()) return task;
    const auto to_whole = [&](int& rank) {
        if (rank >= 0) rank = group.whole_rank(rank);
    };
    if (auto* copy = std::get_if<CopyWork>(&task.work)) {
        to_whole(copy->src);
        to_whole(copy->dst);
        if (auto* both = std::get_if<Broadcast>(&copy->command)) to_whole(both->second);
    }
    if (auto* kernel = std::get_if<CollectiveKernelWork>(&task.work)) kernel->group = group.group();
    to_whole(task.gpu);
    to_whole(task.shard);
    if (int peer = task.stream - transfer_stream(0); peer >= 0) {
        to_whole(peer);
        task.stream = transfer_stream(peer);
    }
    return task;
}

Transfers::Transfers(TaskGraph& graph, const Topology& topology, TransferOptions options, RanksOf ranks_of)
    : graph_(graph),
      topology_(topology),
      ranks_(topology.gpus()),
      per_node_(island_size(topology)),
      ring_(topology.ring()),
      options_(options),
      ranks_of_(ranks_of),
      built_(ranks_, options.alike),
      served_in_turn_(options.agent == Agent::dma &&
                      topology.device().dma->order != QueueOrder::unspecified) {}

bool Transfers::enqueued_by_each() const {
    return served_in_turn_ ||
           (topology_.nodes() > 1 && topology_.device().copy_kernel->queued_launch > Seconds());
}

std::vector<int> Transfers::others(int self, int first, int count) const {
    std::vector<int> result;
    result.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) {
        const int other =
            options_.order == PeerOrder::rotation ? first + (self - first + i) % count : first + i;
        if (other != self) result.push_back(other);
    }
    return result;
}

std::vector<int> Transfers::node_peers(int rank) const {
    return others(rank, rank / per_node_ * per_node_, per_node_);
}

std::vector<int> Transfers::rail_peers(int rank) const {
    std::vector<int> result = others(rank / per_node_, 0, nodes());
    for (int& peer : result) peer = peer * per_node_ + rank % per_node_;
    return result;
}

Task Transfers::transfer(int src, int dst, const Payload& payload) const {
    const bool pull = options_.direction == Direction::pull;
    Task task;
    // In place: a copy would wait for all its small parts to be written.
    auto& work = task.work.emplace<CopyWork>();
    work.src = src;
    work.dst = dst;
    work.bytes = payload.bytes;
    work.run = payload.run;
    work.agent = options_.agent;
    work.direction = options_.direction;
    work.cus = options_.cus;
    work.prelaunched = options_.prelaunch;
    work.stored = options_.stored;
    work.added = options_.added;
    task.gpu = pull ? dst : src;
    // One stream for all peers has the number of the GPU itself.
    const bool single = options_.single_stream || options_.commands == DmaCommands::one_stream;
    task.stream = transfer_stream(single ? task.gpu : pull ? src : dst);
    task.shard = payload.shard;
    task.chunk = payload.chunk;
    task.priority = static_cast<int>(options_.priority);
    return task;
}

TaskId Transfers::copy(int src, int dst, const Payload& payload, std::span<const TaskId> after) {
    Task task = transfer(src, dst, payload);
    std::get<CopyWork>(task.work).all_pairs = !options_.single_stream && topology_.gpus_per_node() > 2 &&
                                              topology_.node_of(src) == topology_.node_of(dst);
    return add(task, after);
}

TaskId Transfers::copy_alone(int src, int dst, const Payload& payload, std::span<const TaskId> after) {
    return add(transfer(src, dst, payload), after);
}

TaskId Transfers::broadcast(int src, int first, int second, const Payload& payload,
                            std::span<const TaskId> after) {
    assert(options_.agent == Agent::dma && options_.direction == Direction::push);
    Task task = transfer(src, first, payload);
    std::get<CopyWork>(task.work).command = Broadcast{second};
    return add(task, after);
}

TaskId Transfers::swap(int a, int b, const Payload& payload, std::span<const TaskId> after) {
    assert(options_.agent == Agent::dma && options_.direction == Direction::push);
    Task task = transfer(a, b, payload);
    std::get<CopyWork>(task.work).command = Swap();
    return add(task, after);
}

TaskId Transfers::copy_back_to_back(int src, int dst, const Payload& payload, int place, int batch,
                                    std::span<const TaskId> after) {
    assert(options_.agent == Agent::dma && 0 <= place && place < batch);
    Task task = transfer(src, dst, payload);
    if (batch > 1)
        std::get<CopyWork>(task.work).command =
            BackToBack{static_cast<std::uint16_t>(place), static_cast<std::uint16_t>(batch)};
    task.stream = transfer_stream(task.gpu);
    return add(task, after);
}

}  // namespace overlap
