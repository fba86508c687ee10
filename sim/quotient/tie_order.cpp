#include "sim/quotient/tie_order.hpp"

#include <algorithm>
#include <vector>

#include "sim/core/mixed.hpp"
#include "sim/topology/device_dma.hpp"

namespace overlap {
namespace {

/// What one GPU sees, in order.
class SeenOrder {
public:
    /// Adds one of its own tasks.
    void add_own(std::size_t kind, std::uint64_t task) { own_[kind] = mixed(own_[kind] ^ mixed(task)); }
    /// An event that lets `task` begin. Events that follow one another and are of one `set` have no order.
    void add_event(std::uint64_t event, std::uint64_t task, std::uint64_t set) {
        if (set != set_) close();
        set_ = set;
        sum_ += mixed(event ^ mixed(task));
    }
    std::uint64_t all() {
        close();
        return events_ + mixed(own_[0]) + mixed(own_[1] + 1);
    }

private:
    void close() {
        events_ = mixed(events_ ^ mixed(set_ ^ mixed(sum_)));
        sum_ = 0;
    }
    std::uint64_t own_[2] = {}, events_ = 0, set_ = UINT64_MAX, sum_ = 0;
};

bool is_queued(const Cost& cost) {
    return cost.launch.queued > Seconds();
}
bool ends_apart(const Cost& cost) {
    const auto* completion = std::get_if<Completion>(&cost.end);
    return completion != nullptr && completion->apart > Seconds();
}
bool is_polled(const Cost& cost) {
    return std::holds_alternative<Polling>(cost.end);
}
/// Then the order in which the tasks of a GPU begin may have an effect, whatever they are.
bool begins_in_turn(const Cost& cost, const ResourceTable& resources) {
    return (cost.claim && resources[cost.claim->resource].order == QueueOrder::round_robin) ||
           (is_polled(cost) && cost.launch.ahead);
}

}  // namespace

bool is_drawn(const Cost& cost, const ResourceTable& resources) {
    return cost.claim && !cost.claim->as_enqueued &&
           resources[cost.claim->resource].order == QueueOrder::unspecified;
}

TieOrder::TieOrder(const TaskGraph& graph, CostView costs, const ResourceTable& resources)
    : graph_(graph), costs_(costs), resources_(resources) {
    const std::span<const Cost> classes = costs.classes();
    in_turn_ = std::any_of(classes.begin(), classes.end(),
                           [&](const Cost& cost) { return begins_in_turn(cost, resources); });
    if (!in_turn_ && std::none_of(classes.begin(), classes.end(), is_polled)) return;
    std::vector<bool> kernel(graph.size());
    counts_.resize(graph.size());
    for (TaskId id = 0; id < graph.size(); ++id) {
        kernel[id] = !graph[id].by_dma();
        counts_[id] = in_turn_ || kernel[id] || is_polled(costs[id]);
    }
    for (TaskId id = 0; id < graph.size(); ++id) {
        if (!in_turn_ && !kernel[id]) continue;
        const int gpu = graph.gpu_of_stream(graph.stream_number(id));
        const auto add = [&](TaskId event) {
            // Where the event itself counts on this GPU, what it lets begin there follows from the edges.
            if (counts_[event] && graph.gpu_of_stream(graph.stream_number(event)) == gpu) return;
            triggers_.push_back({static_cast<std::uint32_t>(event), static_cast<std::uint32_t>(id)});
        };
        if (const TaskId before = graph.stream_predecessor(id); before != id) add(before);
        graph.for_each_edge_into(id, [&](const Edge& edge) { add(edge.predecessor); });
    }
    std::stable_sort(triggers_.begin(), triggers_.end(),
                     [](const Trigger& a, const Trigger& b) { return a.event < b.event; });
}

bool TieOrder::is_alike(const Rotations& rotations, std::span<const std::uint32_t> like) const {
    constexpr std::uint64_t between_polls = UINT64_MAX - 1;
    std::vector<SeenOrder> orders(static_cast<std::size_t>(rotations.gpus()));
    const auto order_of = [&](TaskId id) -> SeenOrder& {
        return orders[static_cast<std::size_t>(graph_.gpu_of_stream(graph_.stream_number(id)))];
    };
    auto next = triggers_.begin();
    for (TaskId id = 0; id < graph_.size(); ++id) {
        const Cost& cost = costs_[id];
        const std::uint64_t itself = graph_.size() + like[id];
        const bool counts = !counts_.empty() && counts_[id],
                   in_order = counts && (in_turn_ || is_polled(cost));
        if (in_order || is_queued(cost) || is_drawn(cost, resources_)) order_of(id).add_own(0, like[id]);
        if (ends_apart(cost)) order_of(id).add_own(1, like[id]);
        if (counts) order_of(id).add_event(like[id], itself, in_order ? itself : between_polls);
        for (; next != triggers_.end() && next->event == id; ++next)
            order_of(next->task)
                .add_event(like[id], like[next->task], in_turn_ ? like[next->task] : between_polls);
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
