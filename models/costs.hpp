#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/cost_model.hpp"

namespace overlap {

/// The cost of each task of a graph. Tasks of equal cost on one stream share a class: a long pipeline has few
/// classes, and a `Cost` has 488 bytes.
struct Costs {
    std::vector<Cost> classes;
    std::vector<std::uint32_t> class_of;  ///< by task

    std::size_t size() const { return class_of.size(); }
    const Cost& operator[](TaskId task) const { return classes[class_of[task]]; }
};

/// `Costs`, or costs by task of which each is a class of its own; does not own them. Contract: tasks of one class are
/// on one stream, so they never run at the same time, and differ only in shard and chunk.
class CostView {
public:
    CostView(const Costs& costs) : classes_(costs.classes), class_of_(costs.class_of) {}
    CostView(const std::vector<Cost>& each) : classes_(each) {}

    std::span<const Cost> classes() const { return classes_; }
    std::uint32_t class_of(TaskId task) const {
        return class_of_.empty() ? static_cast<std::uint32_t>(task) : class_of_[task];
    }
    /// Number of tasks.
    std::size_t size() const { return class_of_.empty() ? classes_.size() : class_of_.size(); }
    const Cost& operator[](TaskId task) const { return classes_[class_of(task)]; }
    /// A copy by task.
    std::vector<Cost> each() const {
        std::vector<Cost> costs;
        costs.reserve(size());
        for (TaskId task = 0; task < size(); ++task) costs.push_back((*this)[task]);
        return costs;
    }

private:
    std::span<const Cost> classes_;
    std::span<const std::uint32_t> class_of_;  ///< empty: a class a task
};

}  // namespace overlap
