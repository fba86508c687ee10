#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/cost_model.hpp"
#include "sim/core/task_graph.hpp"

namespace overlap {

/// When a task ran. start: its stream and its predecessors let it begin (launch latency follows); body: first
/// byte or FLOP; done: last one; end: after its completion latency, or when that is seen.
struct TaskTimes {
    Seconds start;
    Seconds body;
    Seconds done;  ///< the body is over
    Seconds end = never;
    double unit_seconds =
        0;  ///< of a kernel whose thread blocks are placed one by one: units times time [unit·s]

    static constexpr Seconds never{-1};  ///< not ended
};

struct EngineResult {
    std::vector<TaskTimes> tasks;  ///< by task number
    Seconds makespan;              ///< latest end
    double wall_ms = 0;            ///< host time inside the engine
    std::string approximation;     ///< where the engine could not keep to the contract: how; else empty
};

/// The result of a simulation that ran since `begin`. Throws UserError where a task has no end, having waited
/// for ever, or ends after the end of simulated time.
EngineResult finished(const TaskGraph& graph, std::vector<TaskTimes> tasks,
                      std::chrono::steady_clock::time_point begin);

/// Throws UserError: `task` goes on beyond the end of simulated time.
[[noreturn]] void fail_at_end_of_time(const Task& task);
/// Throws the same UserError where a task, with nothing beside it, takes longer than simulated time lasts.
void require_simulable(const TaskGraph& graph, std::span<const Cost> costs, const ResourceTable& resources);

/// Runs a task graph on shared resources.
/// Contract: `costs[t]` belongs to task t. Rates are constant between events and follow the rule in
/// models/contention.hpp; no resource is used above its capacity; a body moves on while it has any share.
/// Order is the Dispatcher's: in-order streams, claims, progress edges; what happens at one instant counts in
/// the order of task numbers, and units are given away at its end. Same input and seed, same output, bit for
/// bit.
class Engine {
public:
    virtual ~Engine() = default;
    virtual EngineResult run(const TaskGraph& graph, std::span<const Cost> costs,
                             const ResourceTable& resources, std::uint64_t seed = 0) const = 0;
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
