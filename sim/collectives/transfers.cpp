#include "sim/collectives/transfers.hpp"

namespace overlap {

std::vector<int> Transfers::peers(int rank) const {
    std::vector<int> result;
    for (int i = 0; i < ranks_; ++i) {
        const int peer = options_.order == PeerOrder::rotation ? (rank + i) % ranks_ : i;
        if (peer != rank) result.push_back(peer);
    }
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
    task.priority = options_.priority == Priority::high ? 1 : 0;
    return graph_.add(task, after);
}

}  // namespace overlap
