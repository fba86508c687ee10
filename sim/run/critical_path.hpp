#pragma once

#include <vector>

#include "models/cost_model.hpp"
#include "sim/engine/engine.hpp"

namespace overlap {

/// Tasks of a simulated run, from the start to the task that ends last, each of which the next one waited for.
/// A task waits for the predecessor (an edge, or the task before it on its stream) that lets it end last: the
/// predecessor's end plus its hand-over, or for a progress edge the time at which the flag is set, plus the rest
/// of the task's body at its speed alone. A task that then waited for a DMA engine or for compute units waited
/// for the last body that ended on them before its own began.
/// A time at which a flag is set is approximate: it assumes that the predecessor's body progresses evenly.
std::vector<TaskId> critical_path(const TaskGraph& graph, CostView costs, const EngineResult& simulated,
                                  const ResourceTable& resources);

}  // namespace overlap
