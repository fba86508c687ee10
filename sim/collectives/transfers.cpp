#include "sim/collectives/transfers.hpp"

namespace overlap {

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

TaskId Transfers::copy(int src, int dst, const Payload& payload, std::span<const TaskId> after) {
    const bool pull = options_.direction == Direction::pull;
    Task task;
    task.work =
        CopyWork{src, dst, payload.bytes, payload.run, options_.agent, options_.direction, options_.cus};
    task.gpu = pull ? dst : src;
    // The one stream of single_stream is numbered as if the GPU were its own peer.
    task.stream = transfer_stream(options_.single_stream ? task.gpu : pull ? src : dst);
    task.shard = payload.shard;
    task.chunk = payload.chunk;
    task.priority = static_cast<int>(options_.priority);
    return graph_.add(task, after);
}

}  // namespace overlap
