#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "sim/engine/engine.hpp"

namespace overlap {

/// Progress of a simulation, which the parent process can read.
struct SimgridReached {
    std::atomic<double> clock{0};  ///< simulated, in seconds
    std::atomic<std::size_t> ended{0};
    std::atomic<TaskId> latest{0};  ///< task to which something happened last
};

/// One simulation by SimGrid; `times` gets the tasks' times. Contract: called once a process, because SimGrid's clock
/// never goes back. Throws SimGrid's exception if its solver gives up. It is in a module of its own,
/// overlap_simgrid.so, which is loaded when it is asked for: hence a plain name, and no value returned.
extern "C" void simulate_by_simgrid(const TaskGraph& graph, CostView costs, const ResourceTable& resources,
                                    std::uint64_t seed, const std::string& solver, SimgridReached& reached,
                                    std::vector<TaskTimes>& times);

}  // namespace overlap
