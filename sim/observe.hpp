#pragma once

#include "sim/engine/engine.hpp"
#include "sim/report/result.hpp"

namespace overlap {

/// When each task ran.
Timeline timeline_of(const TaskGraph& graph, const EngineResult& simulated);

/// Fills in what is read off a simulated run: timeline, exposed communication, utilisation, counters.
void observe(const TaskGraph& graph, std::span<const Cost> costs, const EngineResult& simulated,
             const ResourceTable& resources, RunResult& result);

}  // namespace overlap
