#include "sim/plan/task_list.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>

#include "sim/core/shown.hpp"

namespace overlap {
namespace {

/// Who waits for whom, with the order of streams.
class Waits {
public:
    explicit Waits(const TaskList& list) : after_(list.tasks.size()) {
        std::map<std::pair<int, int>, TaskId> last;
        for (TaskId id = 0; id < list.tasks.size(); ++id) {
            const auto [found, first] = last.try_emplace({list.tasks[id].gpu, list.tasks[id].stream}, id);
            if (!first) after_[id].push_back(std::exchange(found->second, id));
        }
        for (const Edge& edge : list.edges) after_[edge.successor].push_back(edge.predecessor);
    }

    bool only_for_earlier() const {
        for (TaskId id = 0; id < after_.size(); ++id)
            if (std::ranges::any_of(after_[id], [&](TaskId before) { return before >= id; })) return false;
        return true;
    }

    /// Always takes the first of the tasks that may come next; tasks of a cycle, and all behind it, are left out.
    std::vector<TaskId> in_order() const {
        std::vector<std::size_t> left(after_.size());
        std::vector<std::vector<TaskId>> next(after_.size());
        std::priority_queue<TaskId, std::vector<TaskId>, std::greater<>> ready;
        for (TaskId id = 0; id < after_.size(); ++id) {
            left[id] = after_[id].size();
            for (const TaskId before : after_[id]) next[before].push_back(id);
            if (left[id] == 0) ready.push(id);
        }
        std::vector<TaskId> order;
        while (!ready.empty()) {
            order.push_back(ready.top());
            ready.pop();
            for (const TaskId id : next[order.back()])
                if (--left[id] == 0) ready.push(id);
        }
        return order;
    }

    /// Tasks that each wait for the next, and the last for the first, among those that are not in `order`.
    std::vector<TaskId> cycle(const std::vector<TaskId>& order) const {
        std::vector<bool> done(after_.size());
        for (const TaskId id : order) done[id] = true;
        TaskId at = 0;
        while (done[at]) ++at;
        std::vector<TaskId> path;
        for (std::vector<bool> seen(after_.size()); !seen[at];) {
            seen[at] = true;
            path.push_back(at);
            at = *std::ranges::find_if(after_[at], [&](TaskId before) { return !done[before]; });
        }
        path.erase(path.begin(), std::ranges::find(path, at));
        return path;
    }

private:
    std::vector<std::vector<TaskId>> after_;
};

[[noreturn]] void fail_on_cycle(const TaskList& list, const std::vector<TaskId>& cycle) {
    constexpr std::size_t most_named = 6;
    std::string names;
    for (std::size_t i = 0; i < std::min(most_named, cycle.size()); ++i)
        names += list.name_of(cycle[i]) + " waits for ";
    if (cycle.size() > most_named)
        names += std::to_string(cycle.size() - most_named) + " more, which wait for ";
    throw UserError(one_line(list.origin + ": /tasks: form a cycle: " + names + list.name_of(cycle.front()) +
                             " (by \"after\", or by the order of a stream)"));
}

}  // namespace

std::string TaskList::name_of(TaskId id) const {
    const std::string& name = names[line[id]];
    return "task " + std::to_string(line[id]) + " " + in_quotes(name.empty() ? tasks[id].name() : name) +
           " of rank " + std::to_string(tasks[id].gpu);
}

TaskGraph graph_of(const TaskList& list, std::vector<TaskId>& new_id) {
    const std::size_t count = list.tasks.size();
    std::vector<TaskId> order(count);
    for (TaskId id = 0; id < count; ++id) order[id] = id;
    if (const Waits waits(list); !waits.only_for_earlier()) {
        order = waits.in_order();
        if (order.size() < count) fail_on_cycle(list, waits.cycle(order));
    }
    new_id.resize(count);
    for (TaskId id = 0; id < count; ++id) new_id[order[id]] = id;
    TaskGraph graph;
    graph.reserve(count, list.edges.size());
    std::vector<std::size_t> first(count + 1);  // edge, by successor
    for (const Edge& edge : list.edges) ++first[edge.successor + 1];
    for (TaskId id = 0; id < count; ++id) first[id + 1] += first[id];
    for (const TaskId id : order) {
        graph.add(list.tasks[id], {});
        for (std::size_t number = first[id]; number < first[id + 1]; ++number) {
            const Edge& edge = list.edges[number];
            graph.add_edge({new_id[edge.predecessor], new_id[edge.successor], edge.from, edge.to});
        }
    }
    return graph;
}

}  // namespace overlap
