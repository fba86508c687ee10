#pragma once

#include <optional>

#include "models/cost_model.hpp"
#include "sim/core/energy.hpp"
#include "sim/engine/engine.hpp"
#include "sim/report/run/result.hpp"
#include "sim/topology/rotations.hpp"

namespace overlap {

/// When each task ran.
Timeline timeline_of(const TaskGraph& graph, CostView costs, const EngineResult& simulated);

/// Energy of a simulated run over all GPUs: `idle` for the makespan, `active` while a task's body runs on the
/// GPU (a copy: on both GPUs), the work of all tasks (models/work_energy.hpp), minus what the lower clock at
/// the power limit saves in a long run. None if a constant is unknown.
std::optional<Energy> energy_of(const TaskGraph& graph, CostView costs, const EngineResult& simulated,
                                const Machine& machine, const std::optional<Rotations>& alike = {});

/// Fills in the numbers derived from a simulated run: exposed communication, utilisation, compute units of
/// communication, energy. `alike`: the graph is that of representatives only, as in energy_of. `rotations`: each GPU did
/// the same as its representative.
void observe(const TaskGraph& graph, CostView costs, const EngineResult& simulated, const Machine& machine,
             const std::optional<Rotations>& alike, const std::optional<Rotations>& rotations,
             RunResult& result);
/// Fills in timeline, counters and recording.
void record(TaskGraph graph, CostView costs, const EngineResult& simulated, const ResourceTable& resources,
            RunResult& result);

}  // namespace overlap
