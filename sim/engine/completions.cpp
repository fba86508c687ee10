#include "sim/engine/completions.hpp"

#include <algorithm>

namespace overlap {

Completions::Completions(const TaskGraph& graph, CostView costs) : graph_(graph), costs_(costs) {
    const bool any = std::any_of(costs.classes().begin(), costs.classes().end(), [](const Cost& cost) {
        const auto* completion = std::get_if<Completion>(&cost.end);
        return completion != nullptr && completion->apart > Seconds();
    });
    constexpr Seconds long_ago(-1e9);
    if (!any) return;
    last_.assign(static_cast<std::size_t>(graph.gpus()), long_ago);
    find_unseen();
}

void Completions::find_unseen() {
    unseen_.resize(graph_.size());
    for (TaskId id = 0; id < graph_.size(); ++id) {
        const TaskId before = graph_.stream_predecessor(id);
        const bool kernel = graph_[before].kind() == TaskKind::copy && !graph_[before].by_dma();
        unseen_[before] = before != id && kernel && !costs_[before].awaited;
    }
    for (std::size_t i = 0; i < graph_.edge_count(); ++i) {
        const Edge edge = graph_.edge(i);
        if (edge.from_other_gpu ||
            graph_.stream_number(edge.predecessor) != graph_.stream_number(edge.successor))
            unseen_[edge.predecessor] = false;
    }
}

Seconds Completions::delay(TaskId task, Seconds now) {
    const auto& completion = std::get<Completion>(costs_[task].end);
    if (completion.apart == Seconds() || unseen_[task]) return completion.latency;
    Seconds& last = last_[static_cast<std::size_t>(graph_[task].gpu)];
    const Seconds delay = std::max(completion.latency, last + completion.apart - now);
    last = now + delay;
    return delay;
}

}  // namespace overlap
