#include "sim/engine/dispatcher.hpp"

#include <algorithm>

namespace overlap {

Dispatcher::Dispatcher(const TaskGraph& graph, std::span<const Cost> costs)
    : costs_(costs), states_(graph.size()), next_in_stream_(graph.size()) {
    const std::vector<TaskId> previous = graph.stream_predecessors();
    std::size_t queues = 0;
    for (TaskId id = 0; id < graph.size(); ++id) {
        next_in_stream_[id] = id;
        if (previous[id] != id) next_in_stream_[previous[id]] = id;
        states_[id].has_stream = previous[id] == id;
        if (costs[id].queue) queues = std::max(queues, *costs[id].queue + 1);
        first_successor_.push_back(successors_.size());
        for (const TaskId successor : graph.successors(id)) {
            const Task &a = graph[id], &b = graph[successor];
            successors_.push_back({successor, a.gpu == b.gpu && a.stream == b.stream});
            ++states_[successor].waits_for;
        }
    }
    first_successor_.push_back(successors_.size());
    queues_.resize(queues);
}

void Dispatcher::clear() {
    next_.launch.clear();
    next_.set_up.clear();
}

const Dispatcher::Next& Dispatcher::begin() {
    clear();
    for (TaskId id = 0; id < states_.size(); ++id) advance(id);
    return next_;
}

const Dispatcher::Next& Dispatcher::launched(TaskId task) {
    clear();
    states_[task].launch_over = true;
    advance(task);
    return next_;
}

const Dispatcher::Next& Dispatcher::body_done(TaskId task) {
    clear();
    if (costs_[task].queue) {
        Queue& queue = queues_[*costs_[task].queue];
        queue.busy = queue.first < queue.waiting.size();
        if (queue.busy) next_.set_up.push_back(queue.waiting[queue.first++]);
    }
    if (const TaskId follower = next_in_stream_[task]; follower != task) {
        states_[follower].has_stream = true;
        advance(follower);
    }
    return next_;
}

const Dispatcher::Next& Dispatcher::release(TaskId task, bool same_stream) {
    clear();
    for (std::size_t i = first_successor_[task]; i < first_successor_[task + 1]; ++i) {
        if (successors_[i].same_stream != same_stream) continue;
        --states_[successors_[i].task].waits_for;
        advance(successors_[i].task);
    }
    return next_;
}

// Called whenever something about the task has changed: each phase begins once, when all that it needs is
// there.
void Dispatcher::advance(TaskId task) {
    State& state = states_[task];
    if (state.waits_for > 0) return;
    if (!state.launch_begun) {
        if (!state.has_stream && !costs_[task].launch_ahead) return;
        state.launch_begun = true;
        next_.launch.push_back(task);
        return;
    }
    if (!state.launch_over || !state.has_stream) return;
    if (!costs_[task].queue) {
        next_.set_up.push_back(task);
        return;
    }
    Queue& queue = queues_[*costs_[task].queue];
    if (queue.busy) {
        queue.waiting.push_back(task);
    } else {
        queue.busy = true;
        next_.set_up.push_back(task);
    }
}

}  // namespace overlap
