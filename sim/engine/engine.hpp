#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/cost_model.hpp"
#include "sim/core/task_graph.hpp"

namespace overlap {

/// When a task ran. start: its stream and its predecessors let it begin (launch latency follows); body: first
/// byte or FLOP; end: after its completion latency.
struct TaskTimes {
    Seconds start;
    Seconds body;
    Seconds end;
};

struct EngineResult {
    std::vector<TaskTimes> tasks;  ///< by task number
    Seconds makespan;              ///< latest end
    double wall_ms = 0;            ///< host time inside the engine
    std::string approximation;     ///< where the engine could not keep to the contract: how; else empty
};

/// The result of a simulation that ran since `begin`.
inline EngineResult finished(std::vector<TaskTimes> tasks, std::chrono::steady_clock::time_point begin) {
    EngineResult result;
    for (const TaskTimes& times : tasks) result.makespan = std::max(result.makespan, times.end);
    result.tasks = std::move(tasks);
    const std::chrono::duration<double, std::milli> wall = std::chrono::steady_clock::now() - begin;
    result.wall_ms = wall.count();
    return result;
}

/// Runs a task graph on shared resources.
/// Contract: `costs[t]` belongs to task t. Rates are constant between events and follow the rule in
/// models/contention.hpp; no resource is used above its capacity; a body moves on while it has any share.
/// In-order streams, FIFO queues by time of arrival and, at equal times, by task number. Same input, same
/// output, bit for bit.
class Engine {
public:
    virtual ~Engine() = default;
    virtual EngineResult run(const TaskGraph& graph, std::span<const Cost> costs,
                             const ResourceTable& resources) const = 0;
};

struct EngineEntry {
    std::string name;
    std::string summary;
    std::unique_ptr<Engine> (*make)();
};

std::span<const EngineEntry> engines();
/// Throws UserError for an unknown name.
std::unique_ptr<Engine> make_engine(const std::string& name);

}  // namespace overlap
