#include "sim/quotient/tie_order.hpp"

#include <algorithm>
#include <vector>

#include "sim/core/mixed.hpp"

namespace overlap {
namespace {

/// What one GPU sees, in order.
class SeenOrder {
public:
    /// Adds one of its own tasks.
    void add_own(std::size_t kind, std::uint64_t task) { own_[kind] = mixed(own_[kind] ^ mixed(task)); }
    /// An event that lets `task` begin. Events that follow one another and concern one task are a set.
    void add_event(std::uint64_t event, std::uint64_t task) {
        if (task != concerned_) close();
        concerned_ = task;
        set_ += mixed(event);
    }
    std::uint64_t all() {
        close();
        return events_ + mixed(own_[0]) + mixed(own_[1] + 1);
    }

private:
    void close() {
        events_ = mixed(events_ ^ mixed(concerned_ ^ mixed(set_)));
        set_ = 0;
    }
    std::uint64_t own_[2] = {}, events_ = 0, concerned_ = UINT64_MAX, set_ = 0;
};

struct Trigger {
    std::uint32_t event, task;
};

bool is_queued(const Cost& cost) {
    return cost.launch.queued > Seconds();
}
bool ends_apart(const Cost& cost) {
    const auto* completion = std::get_if<Completion>(&cost.end);
    return completion != nullptr && completion->apart > Seconds();
}
/// Then the order of all tasks of a GPU may have an effect.
bool any_order_has_effect(const Cost& cost, const ResourceTable& resources) {
    return std::holds_alternative<Polling>(cost.end) ||
           (cost.claim && resources[cost.claim->resource].order == QueueOrder::round_robin);
}

/// What lets tasks begin, by the numbers of events.
std::vector<Trigger> triggers_of(const TaskGraph& graph) {
    std::vector<Trigger> triggers;
    const auto add = [&](TaskId event, TaskId task) {
        triggers.push_back({static_cast<std::uint32_t>(event), static_cast<std::uint32_t>(task)});
    };
    for (TaskId id = 0; id < graph.size(); ++id) {
        if (const TaskId before = graph.stream_predecessor(id); before != id) add(before, id);
        graph.for_each_edge_into(id, [&](const Edge& edge) { add(edge.predecessor, id); });
    }
    std::stable_sort(triggers.begin(), triggers.end(),
                     [](const Trigger& a, const Trigger& b) { return a.event < b.event; });
    return triggers;
}

}  // namespace

bool is_drawn(const Cost& cost, const ResourceTable& resources) {
    return cost.claim && !cost.claim->as_enqueued &&
           resources[cost.claim->resource].order == QueueOrder::unspecified;
}

bool ties_are_alike(const TaskGraph& graph, CostView costs, const ResourceTable& resources,
                    const Rotations& rotations, std::span<const std::uint32_t> like) {
    const bool any = std::any_of(costs.classes().begin(), costs.classes().end(),
                                 [&](const Cost& cost) { return any_order_has_effect(cost, resources); });
    const std::vector<Trigger> triggers = any ? triggers_of(graph) : std::vector<Trigger>();
    std::vector<SeenOrder> orders(static_cast<std::size_t>(rotations.gpus()));
    const auto order_of = [&](TaskId id) -> SeenOrder& {
        return orders[static_cast<std::size_t>(graph[id].gpu)];
    };
    auto next = triggers.begin();
    for (TaskId id = 0; id < graph.size(); ++id) {
        if (any || is_queued(costs[id]) || is_drawn(costs[id], resources)) order_of(id).add_own(0, like[id]);
        if (ends_apart(costs[id])) order_of(id).add_own(1, like[id]);
        if (any) order_of(id).add_event(like[id], graph.size() + like[id]);
        for (; next != triggers.end() && next->event == id; ++next)
            order_of(next->task).add_event(like[id], like[next->task]);
    }
    std::vector<std::uint64_t> seen;
    for (SeenOrder& order : orders) seen.push_back(order.all());
    for (int gpu = 0; gpu < rotations.gpus(); ++gpu)
        if (seen[static_cast<std::size_t>(gpu)] !=
            seen[static_cast<std::size_t>(rotations.representative(gpu))])
            return false;
    return true;
}

}  // namespace overlap
