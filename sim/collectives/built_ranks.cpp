#include "sim/collectives/built_ranks.hpp"

#include <algorithm>
#include <numeric>

namespace overlap {
namespace {

constexpr unsigned gpu_from_bit = 32;

TaskId named(TaskId number, int gpu) {
    return static_cast<TaskId>(gpu) << gpu_from_bit | number;
}
TaskId number_of(TaskId id) {
    return static_cast<std::uint32_t>(id);
}
int gpu_of(TaskId id) {
    return static_cast<int>(id >> gpu_from_bit);
}

}  // namespace

BuiltRanks::BuiltRanks(int all, const std::optional<Rotations>& alike) : alike_(alike) {
    if (alike_) {
        for (int rank = 0; rank < all; ++rank)
            if (alike_->representative(rank) == rank) ranks_.push_back(rank);
    } else {
        ranks_.resize(static_cast<std::size_t>(all));
        std::iota(ranks_.begin(), ranks_.end(), 0);
    }
}

std::size_t BuiltRanks::place(int rank) const {
    if (!alike_) return static_cast<std::size_t>(rank);
    const auto found = std::ranges::lower_bound(ranks_, alike_->representative(rank));
    return static_cast<std::size_t>(found - ranks_.begin());
}

std::span<const TaskId> BuiltRanks::of(const RankTasks& tasks, int rank) const {
    const std::vector<TaskId>& own = tasks[place(rank)];
    if (!alike_ || alike_->representative(rank) == rank) return own;
    seen_.clear();
    for (const TaskId id : own) seen_.push_back(named(number_of(id), alike_->as_seen_from(rank, gpu_of(id))));
    return seen_;
}

TaskId BuiltRanks::given(int rank, TaskId id) const {
    return alike_ ? named(number_of(id), alike_->seen_from(rank, gpu_of(id))) : id;
}

TaskId BuiltRanks::add(TaskGraph& graph, const Task& task, std::span<const TaskId> after) const {
    if (!alike_) return graph.add(task, after);
    const int gpu = task.gpu;
    const TaskId number = graph.add(seen_by_representative(task, *alike_));
    waits_.clear();
    for (const TaskId before : after) waits_.emplace_back(number_of(before), gpu_of(before) != gpu);
    // Predecessors that are alike end at one time.
    std::ranges::sort(waits_);
    waits_.erase(std::unique(waits_.begin(), waits_.end()), waits_.end());
    for (const auto& [before, on_other_gpu] : waits_) graph.add_edge({before, number, 1, 0, on_other_gpu});
    return named(number, gpu);
}

}  // namespace overlap
