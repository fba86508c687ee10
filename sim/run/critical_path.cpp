#include "sim/run/critical_path.hpp"

#include <algorithm>
#include <optional>

namespace overlap {
namespace {

constexpr double rounding = 1e-9;  // of a time, where two that are equal were computed differently

Seconds handoff(const Task& from, const Task& to, bool from_other_gpu, const Handoffs& handoffs) {
    if (from_other_gpu || from.gpu != to.gpu) return handoffs.other_gpu;
    return from.stream != to.stream ? handoffs.other_stream : Seconds();
}

/// Looks for the task that another one waited for.
class Waits {
public:
    Waits(const TaskGraph& graph, CostView costs, const EngineResult& simulated,
          const ResourceTable& resources)
        : graph_(graph),
          costs_(costs),
          times_(simulated.tasks),
          resources_(resources),
          holders_(resources.size()) {
        for (TaskId id = 0; id < graph.size(); ++id)
            if (costs[id].claim) holders_[costs[id].claim->resource].push_back(id);
        const auto by_end = [this](TaskId id) { return std::pair(times_[id].done, id); };
        for (std::vector<TaskId>& holders : holders_) std::ranges::sort(holders, {}, by_end);
        if (graph.runs_by_data()) order_streams();
    }

    /// None if it began at once.
    std::optional<TaskId> of(TaskId id) const {
        if (const std::optional<TaskId> holder = holder_before(id)) return holder;
        std::optional<TaskId> last;
        Seconds latest;
        const auto consider = [&](TaskId before, Seconds lets_end) {
            if (last && lets_end <= latest) return;
            last = before;
            latest = lets_end;
        };
        const Seconds body = isolated_body(costs_[id], resources_);
        if (const TaskId before = before_.empty() ? graph_.stream_predecessor(id) : before_[id]; before != id)
            consider(before, times_[before].done + body);
        graph_.for_each_edge_into(id, [&](const Edge& edge) {
            const TaskTimes& before = times_[edge.predecessor];
            const Handoffs& handoffs = costs_[edge.predecessor].handoffs;
            const Seconds opens = edge.of_progress()
                                      ? before.body + edge.from * (before.done - before.body) + handoffs.flag
                                      : before.end + handoff(graph_[edge.predecessor], graph_[id],
                                                             edge.from_other_gpu, handoffs);
            consider(edge.predecessor, opens + (1 - edge.to) * body);
        });
        return last;
    }

private:
    void order_streams() {
        std::vector<std::vector<TaskId>> streams(graph_.streams());
        for (TaskId id = 0; id < graph_.size(); ++id) streams[graph_.stream_number(id)].push_back(id);
        before_.resize(graph_.size());
        for (std::vector<TaskId>& tasks : streams) {
            std::ranges::stable_sort(tasks, {}, [this](TaskId id) { return times_[id].body; });
            for (std::size_t i = 0; i < tasks.size(); ++i) before_[tasks[i]] = tasks[i == 0 ? 0 : i - 1];
        }
    }

    /// The task whose units `id` got, if it had to wait for units: that whose body ended just then, or a running
    /// one that freed units before its end (a GEMM in its last wave).
    std::optional<TaskId> holder_before(TaskId id) const {
        const Cost& cost = costs_[id];
        const TaskTimes& own = times_[id];
        const Seconds setup = cost.setup + cost.switch_over, got = own.body - cost.setup;
        if (!cost.claim || own.body - own.start - cost.launch.time - setup <= rounding * own.body)
            return std::nullopt;
        const std::vector<TaskId>& holders = holders_[cost.claim->resource];  // by the ends of their bodies
        const auto end_of = [&](TaskId other) { return times_[other].done; };
        auto at = std::ranges::upper_bound(holders, own.start, {}, end_of);
        std::optional<TaskId> ended;
        for (; at != holders.end(); ++at) {
            const TaskTimes& times = times_[*at];
            if (*at == id || times.body >= own.body) continue;
            const Seconds rest = got - times.done;  // from its end until the units were got
            if (rest >= -rounding * got)
                ended = *at;
            else if (ended && got - times_[*ended].done <= cost.switch_over + event(*ended) + rounding * got)
                return ended;
            else if (frees_early(*at))
                return *at;
        }
        return ended;
    }

    bool frees_early(TaskId id) const {
        const Claim& claim = *costs_[id].claim;
        return claim.yields || claim.parts.index() != 0;
    }
    /// How long the units stay busy after the task's end.
    Seconds event(TaskId id) const {
        const auto* completion = std::get_if<Completion>(&costs_[id].end);
        return completion == nullptr ? Seconds() : completion->event;
    }

    const TaskGraph& graph_;
    CostView costs_;
    const std::vector<TaskTimes>& times_;
    const ResourceTable& resources_;
    std::vector<TaskId> before_;  ///< by task: the one before it on its stream, where streams run by data
    /// Tasks that claim each resource, by the end of their bodies
    std::vector<std::vector<TaskId>> holders_;
};

}  // namespace

std::vector<TaskId> critical_path(const TaskGraph& graph, CostView costs, const EngineResult& simulated,
                                  const ResourceTable& resources) {
    std::vector<TaskId> path;
    if (graph.size() == 0) return path;
    const auto last = std::ranges::max_element(simulated.tasks, {}, &TaskTimes::end);
    const Waits waits(graph, costs, simulated, resources);
    std::optional<TaskId> at = static_cast<TaskId>(last - simulated.tasks.begin());
    for (; at && path.size() < graph.size(); at = waits.of(*at)) path.push_back(*at);
    std::ranges::reverse(path);
    return path;
}

}  // namespace overlap
