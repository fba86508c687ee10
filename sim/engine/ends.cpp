#include "sim/engine/ends.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace overlap {

Ends::Ends(const TaskGraph& graph, std::span<const Cost> costs)
    : graph_(graph), costs_(costs), completions_(graph, costs) {
    std::map<int, int> streams_of_gpu;
    bool events = false;
    for (TaskId id = 0; id < graph.size(); ++id) {
        const auto* completion = std::get_if<Completion>(&costs[id].end);
        events = events || (completion != nullptr ? completion->event > Seconds() : polling(id)->queues > 0);
        if (completion != nullptr) continue;
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

// Tasks of one stream wait for each other by its order, without an event.
void Ends::find_awaited() {
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
        if (polling(id) != nullptr && polling(id)->queues == 0) awaited_[id] = false;
}

// Assigns the events of a GPU to its event queues by turns, in the order in which the tasks were enqueued.
// Only tasks with Cost::awaited take part: the order of other tasks' numbers need not be that of a run.
void Ends::line_up() {
    before_.resize(graph_.size());
    next_poll_.resize(graph_.size());
    seen_at_.resize(graph_.size());
    std::vector<std::vector<TaskId>> events(kernels_.size());  // by GPU, as enqueued
    for (TaskId id = 0; id < graph_.size(); ++id) before_[id] = id;
    after_ = before_;
    for (TaskId id = 0; id < graph_.size(); ++id) {
        if (!keeps_stream(id) || !costs_[id].awaited) continue;
        std::vector<TaskId>& all = events[static_cast<std::size_t>(graph_[id].gpu)];
        const auto queues = static_cast<std::size_t>(polling(id)->queues);
        if (all.size() >= queues) {
            before_[id] = all[all.size() - queues];
            after_[before_[id]] = id;
        }
        all.push_back(id);
    }
}

Seconds Ends::launch_time(TaskId task, Seconds now, Seconds stream_free, Seconds launch) {
    if (turns_.empty()) return launch;
    if (!graph_[task].by_dma()) ++kernels_[static_cast<std::size_t>(graph_[task].gpu)];
    if (polling(task) == nullptr) return launch;
    const std::size_t stream = graph_.stream_number(task);
    const TaskId before = graph_.stream_predecessor(task);
    const bool follows = before != task && polling(before) != nullptr && now <= stream_free;
    const bool goes_on = follows && !keeps_stream(before);
    if (follows)
        launch = std::max(launch - costs_[task].setup, Seconds());  // the engine sets it up meanwhile
    if (goes_on)
        launch = std::max(launch, launched_[stream] + polling(task)->step - now);
    else
        waiting_since_[stream] = now;
    launched_[stream] = now + launch;
    return launch;
}

bool Ends::event_keeps_claim(TaskId task) const {
    return graph_[task].by_dma();
}

Ends::Ending Ends::body_over(TaskId task, Seconds now) {
    seen_.clear();
    if (!turns_.empty() && !graph_[task].by_dma()) --kernels_[static_cast<std::size_t>(graph_[task].gpu)];
    if (polling(task) != nullptr) {
        see(task, now);
        return {false, keeps_stream(task), Seconds(), seen_};
    }
    seen_.push_back({task, completions_.delay(task, now)});
    const Seconds event =
        awaited_.empty() || !awaited_[task] ? Seconds() : std::get<Completion>(costs_[task].end).event;
    const bool takes_time = event > Seconds();
    return {takes_time && event_keeps_claim(task), takes_time, event, seen_};
}

// A poll sees an event when it has seen all that are before it in its event queue.
void Ends::see(TaskId task, Seconds now) {
    if (!keeps_stream(task)) {
        seen_.push_back({task, next_poll(task, now) - now});
        return;
    }
    next_poll_[task] = next_poll(task, now);
    while (next_poll_[task]) {
        const TaskId before = before_[task];
        if (before != task && !seen_at_[before]) break;
        seen_at_[task] = before == task ? *next_poll_[task] : std::max(*next_poll_[task], *seen_at_[before]);
        seen_.push_back({task, std::max(*seen_at_[task] - now, Seconds())});
        if (after_[task] == task) break;
        task = after_[task];
    }
}

Seconds Ends::next_poll(TaskId task, Seconds now) const {
    if (kernels_[static_cast<std::size_t>(graph_[task].gpu)] > 0) return now;
    Polling polled = *polling(task);
    const std::size_t stream = graph_.stream_number(task);
    // Measured on 3 streams; the offset of a stream stays below one period however many there are.
    polled.first = polled.first + Seconds(std::fmod(turns_[stream] * polled.apart.si(), polled.period.si()));
    const Seconds elapsed = now - waiting_since_[stream];
    return std::max(now, waiting_since_[stream] + seen_after(polled, elapsed));
}

}  // namespace overlap
