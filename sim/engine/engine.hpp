#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/costs.hpp"
#include "sim/core/task_graph.hpp"

namespace overlap {

/// When a task ran. start: its stream and its predecessors let it begin, and its launch latency begins; body:
/// first byte or FLOP; done: last byte or FLOP; end: its end is seen, after its completion latency or by a poll.
struct TaskTimes {
    Seconds start;
    Seconds body;
    Seconds done;
    Seconds end = never;
    double unit_seconds =
        0;  ///< compute units times time, of kernels whose thread blocks are placed one by one [unit·s]

    static constexpr Seconds never{-1};  ///< not ended
};

struct EngineResult {
    std::vector<TaskTimes> tasks;  ///< by task number
    Seconds makespan;              ///< latest end
    double wall_ms = 0;            ///< host time inside the engine
    std::string approximation;     ///< how the engine deviated from the contract; empty: it did not
};

/// The result of a simulation that began at wall time `begin`. Throws UserError if a task never ended (deadlock)
/// or ended after the end of simulated time.
EngineResult finished(const TaskGraph& graph, std::vector<TaskTimes> tasks,
                      std::chrono::steady_clock::time_point begin);

/// Throws UserError: `task` lasts beyond the end of simulated time.
[[noreturn]] void fail_at_end_of_time(const Task& task);
/// Throws the same UserError if a task alone takes longer than simulated time lasts.
void require_simulable(const TaskGraph& graph, CostView costs, const ResourceTable& resources);

/// Runs a task graph on shared resources.
/// Contract: `costs[t]` belongs to task t. Rates are constant between events and follow the rule in
/// models/contention.hpp; no resource is used above its capacity; a running body always makes progress.
/// The Dispatcher decides the order: in-order streams, claims, progress edges. Events of one instant are
/// processed in the order of task numbers, and free units are handed out at the end of the instant. Same input
/// and seed, same output, bit for bit.
class Engine {
public:
    virtual ~Engine() = default;
    virtual EngineResult run(const TaskGraph& graph, CostView costs, const ResourceTable& resources,
                             std::uint64_t seed = 0) const = 0;
    /// Calls `each` with the result of run() for every seed below `seeds`, in their order. Seeds may run in parallel.
    virtual void run_seeds(const TaskGraph& graph, CostView costs, const ResourceTable& resources,
                           std::uint64_t seeds, const std::function<void(EngineResult)>& each) const;
};

/// Simulations that have fewer tasks than this together run on one core: 8,000 tasks take 3 ms, and the threads that
/// would share them take 2 ms to start (two cores at 2.6 GHz; README.md, "How fast").
inline constexpr std::uint64_t worth_all_cores = 8'000;

struct EngineEntry {
    std::string name;
    std::string summary;
    std::unique_ptr<Engine> (*make)();
};

std::span<const EngineEntry> engines();
/// Throws UserError for an unknown name.
std::unique_ptr<Engine> make_engine(const std::string& name);

}  // namespace overlap
