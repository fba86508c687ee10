#pragma once

#include <vector>

#include "sim/engine/engine.hpp"
#include "sim/engine/fair_share.hpp"

namespace overlap {

/// The times of a graph whose tasks share nothing: no resource can saturate, no task waits for units that a task of
/// another stream has, and no end is polled for. Each task then begins when the latest of its predecessors lets it,
/// so one pass in the order of task numbers finds all times, equal to the bit to those of the simulation. What a GPU
/// does one at a time, queued launches and ends seen apart, must come in that order, too. Empty if the tasks share
/// something, if their order is another, or if a date reaches the end of time.
std::vector<TaskTimes> times_without_sharing(const TaskGraph& graph, CostView costs,
                                             const ResourceTable& resources, const FairShare& shares);

}  // namespace overlap
