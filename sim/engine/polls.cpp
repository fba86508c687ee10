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
    for (TaskId id = 0; id < graph.size(); ++id) {
        if (!costs[id].polling) continue;
        if (turns_.empty()) {
            waiting_since_.resize(graph.streams());
            turns_.assign(graph.streams(), -1);
        }
        int& turn = turns_[graph.stream_number(id)];
        if (turn < 0) turn = streams_of_gpu[graph[id].gpu]++;
    }
    if (turns_.empty()) return;
    int gpus = 0;
    for (TaskId id = 0; id < graph.size(); ++id) gpus = std::max(gpus, graph[id].gpu + 1);
    kernels_.resize(static_cast<std::size_t>(gpus));
}

void Polls::begin(TaskId task, Seconds now, Seconds stream_free) {
    if (turns_.empty()) return;
    if (is_kernel(graph_[task])) ++kernels_[static_cast<std::size_t>(graph_[task].gpu)];
    if (!costs_[task].polling) return;
    const TaskId before = graph_.stream_predecessor(task);
    const bool goes_on = before != task && costs_[before].polling && now <= stream_free;
    if (!goes_on) waiting_since_[graph_.stream_number(task)] = now;
}

void Polls::end(TaskId task) {
    if (!turns_.empty() && is_kernel(graph_[task])) --kernels_[static_cast<std::size_t>(graph_[task].gpu)];
}

Seconds Polls::delay(TaskId task, Seconds now) const {
    if (kernels_[static_cast<std::size_t>(graph_[task].gpu)] > 0) return {};
    Polling polling = *costs_[task].polling;
    const std::size_t stream = graph_.stream_number(task);
    // Not more than a period: more streams than have been measured (3) would not wait for each other.
    polling.first =
        polling.first + Seconds(std::fmod(turns_[stream] * polling.apart.si(), polling.period.si()));
    const Seconds elapsed = now - waiting_since_[stream];
    return std::max(seen_after(polling, elapsed) - elapsed, Seconds());
}

}  // namespace overlap
