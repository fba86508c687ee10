#include "sim/core/task_graph.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace overlap {

std::string stream_name(int stream) {
    if (stream == host_stream) return "host";
    if (stream == compute_stream) return "compute";
    if (stream == local_stream) return "local";
    if (stream < host_stream) return "side " + std::to_string(side_stream(0) - stream);
    return "transfer " + std::to_string(stream - transfer_stream(0));
}

std::string Task::name() const {
    std::string text = task_kind_names[static_cast<std::size_t>(kind())];
    if (const auto* copy = std::get_if<CopyWork>(&work)) {
        const char* arrow = copy->is_swap() ? "<>" : ">";
        text.append(" ").append(std::to_string(copy->src)).append(arrow).append(std::to_string(copy->dst));
        if (const Broadcast* both = copy->broadcast()) text.append("+").append(std::to_string(both->second));
    }
    if (shard >= 0) text.append(" s").append(std::to_string(shard));
    if (chunk >= 0) text.append(" c").append(std::to_string(chunk));
    return text;
}

GraphTooLarge::GraphTooLarge(std::size_t tasks, std::size_t edges)
    : UserError("the task graph has " + std::to_string(tasks) + " tasks and " + std::to_string(edges) +
                " edges or more, which is too large"),
      tasks(tasks),
      edges(edges) {}

void TaskGraph::reserve(std::size_t tasks, std::size_t edges) {
    if (tasks > limit_.tasks || edges > limit_.edges) throw GraphTooLarge(tasks, edges);
    tasks_.reserve(tasks);
    links_.reserve(tasks);
    stream_numbers_.reserve(tasks);
    edges_.reserve(edges);
}

// Edges go from lower to higher numbers only, so the graph is acyclic, with
// stream order too, by construction.
TaskId TaskGraph::add(const Task& task, std::span<const TaskId> after) {
    const TaskId id = tasks_.size();
    if (id >= limit_.tasks) throw GraphTooLarge(id + 1, edges_.size());
    tasks_.push_back(task);
    links_.push_back({put_on_stream(id), none, none});
    for (const TaskId before : after) add_edge({before, id});
    return id;
}

std::uint32_t TaskGraph::put_on_stream(TaskId id) {
    const int gpu = tasks_[id].gpu;
    const auto place = static_cast<std::size_t>(gpu);
    const auto stream = static_cast<std::size_t>(tasks_[id].stream - side_stream(most_side_streams - 1));
    if (numbers_.size() <= place) numbers_.resize(place + 1);
    // Among 100,000 GPUs a stream to each peer would need a table of 100,000 entries a GPU.
    constexpr std::size_t near = 128;
    if (stream < near && numbers_[place].size() <= stream) numbers_[place].resize(stream + 1, none);
    std::uint32_t& number = stream < near
                                ? numbers_[place][stream]
                                : far_numbers_.try_emplace(place << 32 | stream, none).first->second;
    if (number == none) {
        number = static_cast<std::uint32_t>(streams_.size());
        streams_.push_back({gpu, static_cast<std::uint32_t>(id)});
    }
    stream_numbers_.push_back(number);
    return std::exchange(streams_[number].last, static_cast<std::uint32_t>(id));
}

void TaskGraph::add_edge(const Edge& edge) {
    assert(edge.predecessor < edge.successor && edge.successor < size());
    assert(edge.from > 0 && edge.from <= 1 && edge.to >= 0 && edge.to < 1);
    if (edges_.size() >= limit_.edges) throw GraphTooLarge(size(), edges_.size() + 1);
    const auto number = static_cast<std::uint32_t>(edges_.size());
    std::uint32_t more = none;
    has_progress_edges_ = has_progress_edges_ || edge.of_progress();
    if (edge.of_progress() || edge.from_other_gpu) {
        more = static_cast<std::uint32_t>(more_.size());
        more_.push_back({edge.from, edge.to, edge.from_other_gpu});
    }
    edges_.push_back({static_cast<std::uint32_t>(edge.predecessor),
                      static_cast<std::uint32_t>(edge.successor), more, none});
    auto& [before, first, last] = links_[edge.successor];
    (last == none ? first : edges_[last].next_in) = number;
    last = number;
}

Seconds TaskGraph::longest_path(std::span<const Seconds> durations, bool in_stream_order) const {
    struct Gate {
        double to;
        Seconds opens;
    };
    struct Path {
        Seconds start;
        std::vector<Gate> gates;  ///< of progress edges
    };
    std::vector<Path> paths(size());
    const auto reached = [&](TaskId id, double share) {
        Seconds time = paths[id].start + share * durations[id];
        for (const Gate& gate : paths[id].gates)
            if (gate.to < share) time = std::max(time, gate.opens + (share - gate.to) * durations[id]);
        return time;
    };
    Seconds longest;
    for (TaskId id = 0; id < size(); ++id) {
        Path& path = paths[id];
        if (const TaskId before = stream_predecessor(id); in_stream_order && before != id)
            path.start = reached(before, 1);
        for_each_edge_into(id, [&](const Edge& edge) {
            const Seconds opens = reached(edge.predecessor, edge.from);
            if (edge.to > 0)
                path.gates.push_back({edge.to, opens});
            else
                path.start = std::max(path.start, opens);
        });
        longest = std::max(longest, reached(id, 1));
    }
    return longest;
}

}  // namespace overlap
