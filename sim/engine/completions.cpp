#include "sim/engine/completions.hpp"

#include <algorithm>

namespace overlap {

Completions::Completions(const TaskGraph& graph, std::span<const Cost> costs) : graph_(graph), costs_(costs) {
    const bool any = std::any_of(costs.begin(), costs.end(),
                                 [](const Cost& cost) { return cost.completions_apart > Seconds(); });
    constexpr Seconds long_ago(-1e9);
    if (any) last_.assign(static_cast<std::size_t>(graph.gpus()), long_ago);
}

Seconds Completions::delay(TaskId task, Seconds now) {
    const Cost& cost = costs_[task];
    if (cost.completions_apart == Seconds()) return cost.completion;
    Seconds& last = last_[static_cast<std::size_t>(graph_[task].gpu)];
    const Seconds delay = std::max(cost.completion, last + cost.completions_apart - now);
    last = now + delay;
    return delay;
}

}  // namespace overlap
