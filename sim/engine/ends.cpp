#include "sim/engine/ends.hpp"

#include <algorithm>

namespace overlap {

Ends::Ends(const TaskGraph& graph, CostView costs)
    : graph_(graph), costs_(costs), completions_(graph, costs) {
    bool polls = false, events = false;
    for (const Cost& cost : costs.classes()) {
        const auto* completion = std::get_if<Completion>(&cost.end);
        polls = polls || completion == nullptr;
        events = events || (completion != nullptr ? completion->event > Seconds()
                                                  : std::get<Polling>(cost.end).queues > 0);
    }
    if (events) find_awaited();
    if (!polls) return;
    waiting_since_.resize(graph.streams());
    kernels_.resize(static_cast<std::size_t>(graph.gpus()));
    if (graph.runs_by_data()) ended_last_.assign(graph.streams(), graph.size());
    if (events) line_up();
}

// Tasks of one stream wait for each other by its order, without an event.
void Ends::find_awaited() {
    awaited_.resize(graph_.size());
    for (TaskId id = 0; id < graph_.size(); ++id)
        if (costs_[id].awaited) awaited_[id] = true;
    for (std::size_t i = 0; i < graph_.edge_count(); ++i) {
        const Edge edge = graph_.edge(i);
        const std::size_t from = graph_.stream_number(edge.predecessor),
                          to = graph_.stream_number(edge.successor);
        const bool other_gpu = edge.from_other_gpu || graph_.gpu_of_stream(from) != graph_.gpu_of_stream(to);
        const Polling* polled = polling(edge.predecessor);
        if (!edge.of_progress() && (other_gpu || (from != to && (polled == nullptr || polled->own_events))))
            awaited_[edge.predecessor] = true;
    }
    for (TaskId id = 0; id < graph_.size(); ++id)
        if (polling(id) != nullptr && polling(id)->queues == 0) awaited_[id] = false;
}

// Assigns the events of a GPU to its event queues in turn, in the order in which the tasks were enqueued.
// Only tasks with Cost::awaited take part: the numbers of other tasks need not be in the order of a run.
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
    if (waiting_since_.empty()) return launch;
    if (!graph_[task].by_dma()) ++kernels_[static_cast<std::size_t>(graph_[task].gpu)];
    if (polling(task) == nullptr) return launch;
    const TaskId before = task_before(task);
    const bool follows = before != task && polling(before) != nullptr && now <= stream_free;
    if (!follows || keeps_stream(before)) waiting_since_[graph_.stream_number(task)] = now;
    // A task that follows is set up while the task before it runs.
    return follows ? std::max(launch - costs_[task].setup, Seconds()) : launch;
}

TaskId Ends::task_before(TaskId task) const {
    if (ended_last_.empty()) return graph_.stream_predecessor(task);
    const TaskId last = ended_last_[graph_.stream_number(task)];
    return last == graph_.size() ? task : last;
}

Ends::Ending Ends::body_over(TaskId task, Seconds now) {
    seen_.clear();
    if (!ended_last_.empty()) ended_last_[graph_.stream_number(task)] = task;
    if (!kernels_.empty() && !graph_[task].by_dma()) --kernels_[static_cast<std::size_t>(graph_[task].gpu)];
    if (polling(task) != nullptr) {
        see(task, now);
        return {keeps_stream(task), Seconds(), seen_};
    }
    seen_.push_back({task, completions_.delay(task, now)});
    const Seconds event = is_event(task) ? std::get<Completion>(costs_[task].end).event : Seconds();
    return {event > Seconds(), event, seen_};
}

// A poll sees an event only after it has seen all earlier events of the same event queue.
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
    const Seconds since = waiting_since_[graph_.stream_number(task)];
    return std::max(now, since + seen_after(*polling(task), now - since));
}

}  // namespace overlap
