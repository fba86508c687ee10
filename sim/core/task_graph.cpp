#include "sim/core/task_graph.hpp"

#include <algorithm>
#include <cassert>
#include <map>

namespace overlap {

std::string stream_name(int stream) {
    if (stream == compute_stream) return "compute";
    if (stream == local_stream) return "local";
    return "transfer " + std::to_string(stream - transfer_stream(0));
}

std::string Task::name() const {
    std::string text = task_kind_names[static_cast<std::size_t>(kind())];
    if (const auto* copy = std::get_if<CopyWork>(&work))
        text += " " + std::to_string(copy->src) + ">" + std::to_string(copy->dst);
    if (shard >= 0) text += " s" + std::to_string(shard);
    if (chunk >= 0) text += " c" + std::to_string(chunk);
    return text;
}

// Edges go from lower to higher numbers only, so the graph is acyclic, with stream order too, by
// construction.
TaskId TaskGraph::add(Task task, std::span<const TaskId> after) {
    const TaskId id = boost::add_vertex(std::move(task), graph_);
    for (const TaskId before : after) {
        assert(before < id);
        boost::add_edge(before, id, graph_);
    }
    return id;
}

std::vector<TaskId> TaskGraph::predecessors(TaskId id) const {
    std::vector<TaskId> result;
    for (auto [edge, end] = boost::in_edges(id, graph_); edge != end; ++edge)
        result.push_back(boost::source(*edge, graph_));
    return result;
}

std::vector<TaskId> TaskGraph::successors(TaskId id) const {
    std::vector<TaskId> result;
    for (auto [vertex, end] = boost::adjacent_vertices(id, graph_); vertex != end; ++vertex)
        result.push_back(*vertex);
    return result;
}

std::vector<TaskId> TaskGraph::stream_predecessors() const {
    std::vector<TaskId> result(size());
    std::map<std::pair<int, int>, TaskId> last;
    for (TaskId id = 0; id < size(); ++id) {
        const auto [entry, first] = last.try_emplace({graph_[id].gpu, graph_[id].stream}, id);
        result[id] = entry->second;
        entry->second = id;
        (void)first;
    }
    return result;
}

int TaskGraph::gpus() const {
    int highest = -1;
    for (TaskId id = 0; id < size(); ++id) highest = std::max(highest, graph_[id].gpu);
    return highest + 1;
}

Seconds TaskGraph::critical_path(std::span<const Seconds> durations) const {
    const std::vector<TaskId> in_stream = stream_predecessors();
    std::vector<Seconds> finish(size());
    Seconds longest;
    for (TaskId id = 0; id < size(); ++id) {
        Seconds start = in_stream[id] == id ? Seconds() : finish[in_stream[id]];
        for (const TaskId before : predecessors(id)) start = std::max(start, finish[before]);
        finish[id] = start + durations[id];
        longest = std::max(longest, finish[id]);
    }
    return longest;
}

}  // namespace overlap
