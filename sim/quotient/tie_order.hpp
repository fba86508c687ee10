#pragma once

#include <cstdint>
#include <span>

#include "models/costs.hpp"
#include "sim/core/task_graph.hpp"
#include "sim/topology/rotations.hpp"

namespace overlap {

/// Whether the order in which the task gets units is drawn.
bool is_drawn(const Cost& cost, const ResourceTable& resources);

/// Whether every GPU sees in the same order what may happen at one instant. The engine goes through the events of an
/// instant by task numbers. Their order has an effect where a GPU sees ends by polling, and where engines serve streams
/// in turn (round_robin): then this order must be the same, of all tasks, and of the tasks whose ends let them begin.
/// The order of those that one task waits for does not matter. Where a GPU launches one task at a time
/// (Launch::queued), or sees ends one after another (Completion::apart), only its own tasks' order has an effect,
/// and so it is where orders are drawn by the tasks' places in it.
/// `like`: by task, the task of a representative that it is like. Orders are compared by hashes of 64 bits.
bool ties_are_alike(const TaskGraph& graph, CostView costs, const ResourceTable& resources,
                    const Rotations& rotations, std::span<const std::uint32_t> like);

}  // namespace overlap
