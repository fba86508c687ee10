#include <algorithm>
#include <map>

#include "sim/core/shown.hpp"
#include "sim/plan/plan_checks.hpp"

namespace overlap {
namespace {

/// Which tasks have ended when a task begins, by edges and by the order of streams.
class Past {
public:
    explicit Past(const TaskGraph& graph) : graph_(graph), place_(graph.size()) {
        // 0.4 GB. Larger graphs, and streams without an order, are only asked whether a task has a lower number.
        constexpr std::size_t most = 100'000'000;
        if (graph.size() * graph.streams() > most || graph.runs_by_data()) return;
        ended_.resize(graph.size() * graph.streams());
        std::vector<std::uint32_t> count(graph.streams());
        for (TaskId id = 0; id < graph.size(); ++id) {
            place_[id] = ++count[graph.stream_number(id)];
            add(graph.stream_predecessor(id), id);
            graph.for_each_edge_into(id, [&](const Edge& edge) { add(edge.predecessor, id); });
        }
    }

    bool has(TaskId before, TaskId id) const {
        if (before >= id || ended_.empty()) return before < id;
        return ended_[id * graph_.streams() + graph_.stream_number(before)] >= place_[before];
    }

private:
    void add(TaskId before, TaskId id) {
        if (before == id) return;
        const std::size_t streams = graph_.streams();
        for (std::size_t s = 0; s < streams; ++s)
            ended_[id * streams + s] = std::max(ended_[id * streams + s], ended_[before * streams + s]);
        std::uint32_t& own = ended_[id * streams + graph_.stream_number(before)];
        own = std::max(own, place_[before]);
    }

    const TaskGraph& graph_;
    std::vector<std::uint32_t> place_;  ///< on its stream, from 1
    std::vector<std::uint32_t> ended_;  ///< by task and stream: how many of its tasks
};

/// What of `block` is left without `other`, in up to four parts.
void cut(const Block& block, const Block& other, std::vector<Block>& left) {
    const std::int64_t top = std::max(block.row, other.row),
                       left_column = std::max(block.column, other.column);
    const std::int64_t bottom = std::min(block.row + block.rows, other.row + other.rows);
    const std::int64_t right = std::min(block.column + block.columns, other.column + other.columns);
    if (top >= bottom || left_column >= right) return left.push_back(block);
    const auto add = [&](std::int64_t row, std::int64_t column, std::int64_t rows, std::int64_t columns) {
        if (rows > 0 && columns > 0) left.push_back({block.buffer, row, column, rows, columns});
    };
    add(block.row, block.column, top - block.row, block.columns);
    add(bottom, block.column, block.row + block.rows - bottom, block.columns);
    add(top, block.column, bottom - top, left_column - block.column);
    add(top, right, bottom - top, block.column + block.columns - right);
}

/// Who writes what.
class Writes {
public:
    Writes(const Placement& placement, const TaskGraph& graph)
        : past_(graph), tallest_(placement.buffers.size()) {
        by_row_.resize(placement.buffers.size());
        for (const Block& block : placement.inputs) add(block, input);
        for (TaskId id = 0; id < graph.size(); ++id)
            for (const Block& block : placement.tasks[id].to) add(block, id);
    }

    /// Whether all of `block` is there when the task begins.
    bool has(const Block& block, TaskId reader) const {
        std::vector<Block> left{block}, next;
        const auto& writes = by_row_[block.buffer];
        const auto end = writes.lower_bound(block.row + block.rows);
        for (auto it = writes.lower_bound(block.row - tallest_[block.buffer]); it != end && !left.empty();
             ++it) {
            const auto& [other, writer] = it->second;
            if (writer != input && !past_.has(writer, reader)) continue;
            next.clear();
            for (const Block& part : left) cut(part, other, next);
            left.swap(next);
        }
        return left.empty() || block.rows == 0 || block.columns == 0;
    }

private:
    static constexpr TaskId input = SIZE_MAX;
    void add(const Block& block, TaskId writer) {
        by_row_[block.buffer].emplace(block.row, std::pair(block, writer));
        tallest_[block.buffer] = std::max(tallest_[block.buffer], block.rows);
    }

    Past past_;
    std::vector<std::int64_t> tallest_;  ///< by buffer: rows of its largest block
    std::vector<std::multimap<std::int64_t, std::pair<Block, TaskId>>> by_row_;
};

std::string text_of(const Block& block, const Placement& placement) {
    const Buffer& buffer = placement.buffers[block.buffer];
    return "rows " + std::to_string(block.row) + " to " + std::to_string(block.row + block.rows - 1) +
           ", columns " + std::to_string(block.column) + " to " +
           std::to_string(block.column + block.columns - 1) + " of " + in_quotes(buffer.name) + " of rank " +
           std::to_string(buffer.gpu);
}

}  // namespace

void require_written(const Plan& plan) {
    const Placement& placement = *plan.placement;
    const Writes writes(placement, plan.graph);
    for (TaskId id = 0; id < plan.graph.size(); ++id) {
        std::vector<Block> read = placement.tasks[id].from;
        if (const auto* gemm = std::get_if<GemmShape>(&plan.graph[id].work);
            gemm != nullptr && gemm->accumulate)
            read.push_back(placement.tasks[id].to.front());
        for (const Block& block : read)
            if (!writes.has(block, id))
                throw UserError(one_line(plan.origin + ": /tasks: " + in_quotes(plan.name_of(id)) +
                                         " of rank " + std::to_string(plan.graph[id].gpu) + " reads " +
                                         text_of(block, placement) +
                                         ", not all of which is written by tasks that it waits for"));
    }
}

}  // namespace overlap
