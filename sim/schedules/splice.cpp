#include "sim/schedules/splice.hpp"

#include <array>
#include <set>

#include "sim/core/ranges.hpp"

namespace overlap {
namespace {

/// Ranks on which the result of a task is: the destinations of a copy, else the GPU that executes it. The second
/// is −1 if there is one.
using TaskPlaces = std::array<int, 2>;

TaskPlaces places_of(const Task& task) {
    const auto* copy = std::get_if<CopyWork>(&task.work);
    if (copy == nullptr) return {task.gpu, -1};
    if (const Broadcast* both = copy->broadcast()) return {copy->dst, both->second};
    if (copy->is_swap()) return {copy->dst, copy->src};
    return {copy->dst, -1};
}

bool is_computation_kind(TaskKind kind) {
    return kind == TaskKind::gemm || kind == TaskKind::local_copy;
}

/// Tasks of a pair's graph after which each rank has a result. Leaves out tasks whose end follows from that of a later
/// one at the same place.
class LastTasks {
public:
    /// Counts tasks for which `counts(kind)` holds.
    template <class Counts>
    LastTasks(const TaskGraph& pair, Counts&& counts) : pair_(pair), open_(pair.size(), TaskPlaces{-1, -1}) {
        for (TaskId id = 0; id < pair.size(); ++id) {
            if (!counts(pair[id].kind())) continue;
            open_[id] = places_of(pair[id]);
            if (const TaskId before = pair.stream_predecessor(id); before != id) cover(before, id);
            pair.for_each_edge_into(id, [&](const Edge& edge) {
                if (edge.from == 1) cover(edge.predecessor, id);
            });
        }
    }

    /// Tasks of each rank, with numbers from `offset` on.
    RankTasks by_rank(TaskId offset, std::size_t ranks) const {
        RankTasks ends(ranks);
        for (TaskId id = 0; id < pair_.size(); ++id)
            for (const int place : open_[id])
                if (place >= 0) ends[static_cast<std::size_t>(place)].push_back(offset + id);
        return ends;
    }

private:
    void cover(TaskId before, TaskId after) {
        for (int& place : open_[before])
            if (place == open_[after][0] || place == open_[after][1]) place = -1;
    }

    const TaskGraph& pair_;
    std::vector<TaskPlaces> open_;
};

/// Adds the tasks of a pair with the edges that let them wait for the list.
class OuterWaits {
public:
    OuterWaits(const TaskGraph& pair, const RankTasks& ready) : pair_(pair), ready_(ready) {}

    /// What task `id` waits for outside of the pair.
    std::vector<TaskId> of(TaskId id) {
        std::vector<TaskId> after;
        const Task& task = pair_[id];
        bool is_root = true;
        pair_.for_each_edge_into(id, [&](const Edge&) { is_root = false; });
        if (const auto* copy = std::get_if<CopyWork>(&task.work)) {
            if (is_root) for_each_way(*copy, [&](int src, int) { wait(id, src, after); });
        } else if (is_root || task.stream == compute_stream) {
            wait(id, task.gpu, after);
        }
        return after;
    }

private:
    void wait(TaskId id, int rank, std::vector<TaskId>& after) {
        if (!waited_.insert({pair_.stream_number(id), rank}).second) return;
        append(after, ready_[static_cast<std::size_t>(rank)]);
    }

    const TaskGraph& pair_;
    const RankTasks& ready_;
    std::set<std::pair<std::size_t, int>> waited_;  ///< streams, and ranks whose operand their tasks wait for
};

}  // namespace

SplicedEnds splice(TaskGraph& graph, const TaskGraph& pair, Order order, const RankTasks& ready,
                   const Topology& group, ListOrder list_order) {
    const TaskId offset = graph.size();
    OuterWaits waits(pair, ready);
    for (TaskId id = 0; id < pair.size(); ++id) graph.add(in_whole(pair[id], group), waits.of(id));
    for (std::size_t number = 0; number < pair.edge_count(); ++number) {
        Edge edge = pair.edge(number);
        edge.predecessor += offset;
        edge.successor += offset;
        graph.add_edge(edge);
    }
    for (TaskId id = 0; list_order == ListOrder::data && id < pair.size(); ++id)
        if (const TaskId before = pair.stream_predecessor(id);
            is_computation_kind(pair[before].kind()) != is_computation_kind(pair[id].kind()))
            graph.add_edge({offset + before, offset + id});
    const auto of_first = [&](TaskKind kind) {
        return is_computation_kind(kind) != (order == Order::collective_first);
    };
    const auto of_both = [](TaskKind) { return true; };
    return {LastTasks(pair, of_first).by_rank(offset, ready.size()),
            LastTasks(pair, of_both).by_rank(offset, ready.size())};
}

}  // namespace overlap
