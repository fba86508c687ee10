#include "sim/engine/polls.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace overlap {
namespace {

bool is_kernel(const Task& task) {
    const auto* copy = std::get_if<CopyWork>(&task.work);
    return copy == nullptr || copy->agent == Agent::cu;
}

}  // namespace

Polls::Polls(const TaskGraph& graph, std::span<const Cost> costs) : graph_(graph), costs_(costs) {
    std::map<int, int> streams_of_gpu;
    bool events = false;
    for (TaskId id = 0; id < graph.size(); ++id) {
        events =
            events || costs[id].event > Seconds() || (costs[id].polling && costs[id].polling->queues > 0);
        if (!costs[id].polling) continue;
        if (turns_.empty()) {
            waiting_since_.resize(graph.streams());
            launched_.resize(graph.streams());
            turns_.assign(graph.streams(), -1);
        }
        int& turn = turns_[graph.stream_number(id)];
        if (turn < 0) turn = streams_of_gpu[graph[id].gpu]++;
    }
    if (events) find_awaited();
    if (turns_.empty()) return;
    kernels_.resize(static_cast<std::size_t>(graph.gpus()));
    if (events) line_up();
}

// Within a stream the order says it all: there is no event.
void Polls::find_awaited() {
    awaited_.resize(graph_.size());
    for (TaskId id = 0; id < graph_.size(); ++id)
        if (costs_[id].awaited) awaited_[id] = true;
    for (std::size_t i = 0; i < graph_.edge_count(); ++i) {
        const Edge edge = graph_.edge(i);
        if (!edge.of_progress() &&
            graph_.stream_number(edge.predecessor) != graph_.stream_number(edge.successor))
            awaited_[edge.predecessor] = true;
    }
    for (TaskId id = 0; id < graph_.size(); ++id)
        if (costs_[id].polling && costs_[id].polling->queues == 0) awaited_[id] = false;
}

// Only of chains that say so (Cost::awaited): those of interference, whose numbers are not those of the runs
// they stand for, are edges.
void Polls::line_up() {
    before_.resize(graph_.size());
    next_poll_.resize(graph_.size());
    seen_.resize(graph_.size());
    std::vector<std::vector<TaskId>> events(kernels_.size());  // by GPU, as enqueued
    for (TaskId id = 0; id < graph_.size(); ++id) before_[id] = id;
    after_ = before_;
    for (TaskId id = 0; id < graph_.size(); ++id) {
        if (!keeps_stream(id) || !costs_[id].awaited) continue;
        std::vector<TaskId>& all = events[static_cast<std::size_t>(graph_[id].gpu)];
        const auto queues = static_cast<std::size_t>(costs_[id].polling->queues);
        if (all.size() >= queues) {
            before_[id] = all[all.size() - queues];
            after_[before_[id]] = id;
        }
        all.push_back(id);
    }
}

Seconds Polls::begin(TaskId task, Seconds now, Seconds stream_free, Seconds launch) {
    if (turns_.empty()) return launch;
    if (is_kernel(graph_[task])) ++kernels_[static_cast<std::size_t>(graph_[task].gpu)];
    if (!costs_[task].polling) return launch;
    const std::size_t stream = graph_.stream_number(task);
    const TaskId before = graph_.stream_predecessor(task);
    const bool follows = before != task && costs_[before].polling && now <= stream_free;
    const bool goes_on = follows && !keeps_stream(before);
    if (follows)
        launch = std::max(launch - costs_[task].setup, Seconds());  // the engine sets it up meanwhile
    if (goes_on)
        launch = std::max(launch, launched_[stream] + costs_[task].polling->step - now);
    else
        waiting_since_[stream] = now;
    launched_[stream] = now + launch;
    return launch;
}

bool Polls::event_keeps_claim(TaskId task) const {
    return !is_kernel(graph_[task]);
}

void Polls::end(TaskId task) {
    if (!turns_.empty() && is_kernel(graph_[task])) --kernels_[static_cast<std::size_t>(graph_[task].gpu)];
}

std::span<const Polls::Seen> Polls::seen(TaskId task, Seconds now) {
    result_.clear();
    if (!keeps_stream(task)) {
        result_.push_back({task, next_poll(task, now) - now});
        return result_;
    }
    next_poll_[task] = next_poll(task, now);
    // It may be the one that others of its queue have been waiting for.
    while (next_poll_[task]) {
        const TaskId before = before_[task];
        if (before != task && !seen_[before]) break;
        seen_[task] = before == task ? *next_poll_[task] : std::max(*next_poll_[task], *seen_[before]);
        result_.push_back({task, std::max(*seen_[task] - now, Seconds())});
        if (after_[task] == task) break;
        task = after_[task];
    }
    return result_;
}

Seconds Polls::next_poll(TaskId task, Seconds now) const {
    if (kernels_[static_cast<std::size_t>(graph_[task].gpu)] > 0) return now;
    Polling polling = *costs_[task].polling;
    const std::size_t stream = graph_.stream_number(task);
    // Not more than a period: more streams than have been measured (3) would not wait for each other.
    polling.first =
        polling.first + Seconds(std::fmod(turns_[stream] * polling.apart.si(), polling.period.si()));
    const Seconds elapsed = now - waiting_since_[stream];
    return std::max(now, waiting_since_[stream] + seen_after(polling, elapsed));
}

}  // namespace overlap
