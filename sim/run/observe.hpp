#pragma once

#include <optional>

#include "models/cost_model.hpp"
#include "sim/core/energy.hpp"
#include "sim/engine/engine.hpp"
#include "sim/report/run/result.hpp"

namespace overlap {

/// When each task ran.
Timeline timeline_of(const TaskGraph& graph, const EngineResult& simulated);

/// The most compute units that communication has of one GPU at one time: those that copy kernels and library
/// collectives hold, and those that sums of partial results get, taken as even over their bodies. Packing
/// around a GEMM is no communication, and a DMA engine needs none.
double communication_units(const TaskGraph& graph, std::span<const Cost> costs, const EngineResult& simulated,
                           const ResourceTable& resources);

/// Energy of a simulated run, all GPUs together: `idle` of every GPU for the makespan, `active` while the
/// body of a task runs on it (a copy: on both GPUs), the work of all tasks (models/work_energy.hpp), and what
/// a long run saves by the lower clock at the power limit. None where a constant is not known.
std::optional<Energy> energy_of(const TaskGraph& graph, std::span<const Cost> costs,
                                const EngineResult& simulated, const Machine& machine);

/// Fills in the numbers that are read off a simulated run: exposed communication, utilisation, compute units
/// of communication, energy.
void observe(const TaskGraph& graph, std::span<const Cost> costs, const EngineResult& simulated,
             const Machine& machine, RunResult& result);
/// Fills in what one can look at: timeline, counters.
void record(const TaskGraph& graph, std::span<const Cost> costs, const EngineResult& simulated,
            const ResourceTable& resources, RunResult& result);

}  // namespace overlap
