#pragma once

#include "sim/engine/engine.hpp"
#include "sim/report/result.hpp"

namespace overlap {

/// When each task ran.
Timeline timeline_of(const TaskGraph& graph, const EngineResult& simulated);

/// Fills in the numbers that are read off a simulated run: exposed communication, utilisation.
void observe(const TaskGraph& graph, std::span<const Cost> costs, const EngineResult& simulated,
             const ResourceTable& resources, RunResult& result);
/// Fills in what one can look at: timeline, counters.
void record(const TaskGraph& graph, std::span<const Cost> costs, const EngineResult& simulated,
            const ResourceTable& resources, RunResult& result);

}  // namespace overlap
