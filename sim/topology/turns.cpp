#include "sim/topology/turns.hpp"

namespace overlap {

int seen_stream(int gpu, int stream, const Turns& turns) {
    const int peer = stream - transfer_stream(0);
    return peer < 0 || peer >= turns.gpus() ? stream : transfer_stream(turns.seen_from(gpu, peer));
}

Task seen_by_representative(Task task, const Turns& turns) {
    const auto turn = [&, gpu = task.gpu](int& other) {
        if (other >= 0 && other < turns.gpus()) other = turns.seen_from(gpu, other);
    };
    if (auto* copy = std::get_if<CopyWork>(&task.work)) {
        turn(copy->src);
        turn(copy->dst);
        if (auto* broadcast = std::get_if<Broadcast>(&copy->command)) turn(broadcast->second);
    }
    task.stream = seen_stream(task.gpu, task.stream, turns);
    turn(task.gpu);
    return task;
}

}  // namespace overlap
