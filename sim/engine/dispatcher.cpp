#include "sim/engine/dispatcher.hpp"

namespace overlap {

Dispatcher::Dispatcher(const TaskGraph& graph, std::span<const Cost> costs)
    : graph_(graph), costs_(costs), states_(graph.size()), next_in_stream_(graph.size()) {
    const std::vector<TaskId> previous = graph.stream_predecessors();
    for (TaskId id = 0; id < graph.size(); ++id) {
        next_in_stream_[id] = id;
        if (previous[id] != id) next_in_stream_[previous[id]] = id;
        states_[id].waits_for = graph.predecessors(id).size();
        states_[id].has_stream = previous[id] == id;
    }
}

Dispatcher::Next Dispatcher::begin() {
    Next next;
    for (TaskId id = 0; id < graph_.size(); ++id) advance(id, next);
    return next;
}

Dispatcher::Next Dispatcher::launched(TaskId task) {
    Next next;
    states_[task].launch_over = true;
    advance(task, next);
    return next;
}

Dispatcher::Next Dispatcher::body_done(TaskId task) {
    Next next;
    if (costs_[task].queue) {
        Queue& queue = queues_[*costs_[task].queue];
        queue.busy = !queue.waiting.empty();
        if (queue.busy) {
            next.set_up.push_back(queue.waiting.front());
            queue.waiting.pop_front();
        }
    }
    if (const TaskId follower = next_in_stream_[task]; follower != task) {
        states_[follower].has_stream = true;
        advance(follower, next);
    }
    return next;
}

Dispatcher::Next Dispatcher::release(TaskId task, bool same_stream) {
    Next next;
    for (const TaskId successor : graph_.successors(task)) {
        const Task &a = graph_[task], &b = graph_[successor];
        if ((a.gpu == b.gpu && a.stream == b.stream) != same_stream) continue;
        --states_[successor].waits_for;
        advance(successor, next);
    }
    return next;
}

// Called whenever something about the task has changed: each phase begins once, when all that it needs is
// there.
void Dispatcher::advance(TaskId task, Next& next) {
    State& state = states_[task];
    if (state.waits_for > 0) return;
    if (!state.launch_begun) {
        if (!state.has_stream && !costs_[task].launch_ahead) return;
        state.launch_begun = true;
        next.launch.push_back(task);
        return;
    }
    if (!state.launch_over || !state.has_stream) return;
    if (!costs_[task].queue) {
        next.set_up.push_back(task);
        return;
    }
    Queue& queue = queues_[*costs_[task].queue];
    if (queue.busy) {
        queue.waiting.push_back(task);
    } else {
        queue.busy = true;
        next.set_up.push_back(task);
    }
}

}  // namespace overlap
