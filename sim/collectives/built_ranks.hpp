#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "sim/topology/rotations.hpp"

namespace overlap {

/// Tasks of each rank whose tasks are built, in the order of BuiltRanks::ranks: of all ranks, unless said otherwise.
using RankTasks = std::vector<std::vector<TaskId>>;

/// The ranks whose tasks a generator adds to a graph: all, or the representatives of rotations under which the others are
/// alike. Then a generator goes through the representatives only, and can still refer to any rank's tasks: a task of
/// a rank that is not built is the task of the rank's representative, turned. A TaskId names the task of the graph in
/// its lower 32 bits, and above them the GPU that executes it as the rank that has it sees that GPU.
class BuiltRanks {
public:
    BuiltRanks(int all, const std::optional<Rotations>& alike);

    const std::vector<int>& ranks() const { return ranks_; }
    std::size_t count() const { return ranks_.size(); }
    /// Place of `rank`, or of its representative, in ranks().
    std::size_t place(int rank) const;
    /// The tasks of any rank. Valid until the next call.
    std::span<const TaskId> of(const RankTasks& tasks, int rank) const;
    /// Adds a task to those of any rank.
    void give(RankTasks& tasks, int rank, TaskId id) const { tasks[place(rank)].push_back(given(rank, id)); }
    /// The name that a task of `rank` has among those of the rank's representative.
    TaskId given(int rank, TaskId id) const;
    /// The rank that is to the representative of `rank` what `other` is to `rank`.
    int seen_from(int rank, int other) const { return alike_ ? alike_->seen_from(rank, other) : other; }
    /// Adds a task of any GPU to a graph.
    TaskId add(TaskGraph& graph, const Task& task, std::span<const TaskId> after) const;

private:
    std::optional<Rotations> alike_;
    std::vector<int> ranks_;
    mutable std::vector<TaskId> seen_;
    /// What the task that is added waits for: predecessor, whether it is on another GPU.
    mutable std::vector<std::pair<TaskId, bool>> waits_;
};

}  // namespace overlap
