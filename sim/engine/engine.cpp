#include "sim/engine/engine.hpp"

#include <algorithm>

#include "sim/core/errors.hpp"

namespace overlap {

EngineResult finished(const TaskGraph& graph, std::vector<TaskTimes> tasks,
                      std::chrono::steady_clock::time_point begin) {
    EngineResult result;
    for (TaskId id = 0; id < tasks.size(); ++id) {
        if (tasks[id].end < Seconds())
            throw UserError("the schedule deadlocks: " + graph[id].name() + " of gpu " +
                            std::to_string(graph[id].gpu) +
                            " waits for ever (for compute units that kernels polling flags keep?)");
        result.makespan = std::max(result.makespan, tasks[id].end);
    }
    result.tasks = std::move(tasks);
    const std::chrono::duration<double, std::milli> wall = std::chrono::steady_clock::now() - begin;
    result.wall_ms = wall.count();
    return result;
}

}  // namespace overlap
