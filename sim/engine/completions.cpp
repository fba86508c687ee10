#include "sim/engine/completions.hpp"

#include <algorithm>

namespace overlap {

Completions::Completions(const TaskGraph& graph, std::span<const Cost> costs) : graph_(graph), costs_(costs) {
    const bool any = std::any_of(costs.begin(), costs.end(),
                                 [](const Cost& cost) { return cost.completions_apart > Seconds(); });
    constexpr Seconds long_ago(-1e9);
    if (!any) return;
    last_.assign(static_cast<std::size_t>(graph.gpus()), long_ago);
    find_unseen();
}

bool Completions::is_kernel(TaskId task) const {
    const auto* copy = std::get_if<CopyWork>(&graph_[task].work);
    return copy != nullptr && copy->agent == Agent::cu;
}

void Completions::find_unseen() {
    unseen_.resize(graph_.size());
    for (TaskId id = 0; id < graph_.size(); ++id) {
        const TaskId before = graph_.stream_predecessor(id);
        unseen_[before] = before != id && is_kernel(before) && !costs_[before].awaited;
    }
    for (std::size_t i = 0; i < graph_.edge_count(); ++i) {
        const Edge edge = graph_.edge(i);
        if (graph_.stream_number(edge.predecessor) != graph_.stream_number(edge.successor))
            unseen_[edge.predecessor] = false;
    }
}

Seconds Completions::delay(TaskId task, Seconds now) {
    const Cost& cost = costs_[task];
    if (cost.completions_apart == Seconds() || unseen_[task]) return cost.completion;
    Seconds& last = last_[static_cast<std::size_t>(graph_[task].gpu)];
    const Seconds delay = std::max(cost.completion, last + cost.completions_apart - now);
    last = now + delay;
    return delay;
}

}  // namespace overlap
