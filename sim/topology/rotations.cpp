#include "sim/topology/rotations.hpp"

namespace overlap {

int seen_stream(int gpu, int stream, const Rotations& rotations) {
    const int peer = stream - transfer_stream(0);
    return peer < 0 || peer >= rotations.gpus() ? stream : transfer_stream(rotations.seen_from(gpu, peer));
}

Task seen_by_representative(Task task, const Rotations& rotations) {
    const auto turn = [&, gpu = task.gpu](int& other) {
        if (other >= 0 && other < rotations.gpus()) other = rotations.seen_from(gpu, other);
    };
    if (auto* copy = std::get_if<CopyWork>(&task.work)) {
        turn(copy->src);
        turn(copy->dst);
        if (auto* broadcast = std::get_if<Broadcast>(&copy->command)) turn(broadcast->second);
    }
    task.stream = seen_stream(task.gpu, task.stream, rotations);
    turn(task.gpu);
    return task;
}

}  // namespace overlap
