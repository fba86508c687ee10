#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/costs.hpp"
#include "sim/core/task_graph.hpp"
#include "sim/topology/rotations.hpp"

namespace overlap {

/// Whether the order in which the task gets units is drawn.
bool is_drawn(const Cost& cost, const ResourceTable& resources);

/// Whether every GPU sees in the same order what may happen at one instant. The engine goes through the events of an
/// instant by task numbers. Where engines serve streams in turn (round_robin), this order has an effect: of all tasks, and
/// of the tasks whose ends let them begin; so it must be the same. Where a GPU sees ends by polling, it has one on what a
/// poll depends on: whether a kernel is on the GPU (Ends). There only polled copies have an order; and between two of them
/// the same kernels must end, and the same events let kernels begin.
/// The order of those that one task waits for does not matter. Where a GPU launches one task at a time
/// (Launch::queued), or sees ends one after another (Completion::apart), only its own tasks' order has an effect,
/// and so it is where orders are drawn by the tasks' places in it.
class TieOrder {
public:
    /// Its arguments must outlive it.
    TieOrder(const TaskGraph& graph, CostView costs, const ResourceTable& resources);

    /// `like`: by task, the task of a representative that it is like. Orders are compared by hashes of 64 bits.
    bool is_alike(const Rotations& rotations, std::span<const std::uint32_t> like) const;

private:
    struct Trigger {
        std::uint32_t event, task;
    };

    const TaskGraph& graph_;
    CostView costs_;
    const ResourceTable& resources_;
    bool in_turn_ = false;
    std::vector<bool> counts_;       ///< by task: whether its own events count; empty if none does
    std::vector<Trigger> triggers_;  ///< what else lets tasks begin, by the numbers of events
};

}  // namespace overlap
