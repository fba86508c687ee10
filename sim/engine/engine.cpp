#include "sim/engine/engine.hpp"

#include <algorithm>

#include "sim/core/errors.hpp"
#include "sim/engine/event_queue.hpp"

namespace overlap {

EngineResult finished(const TaskGraph& graph, std::vector<TaskTimes> tasks,
                      std::chrono::steady_clock::time_point begin) {
    EngineResult result;
    for (TaskId id = 0; id < tasks.size(); ++id) {
        if (tasks[id].end < Seconds())
            throw UserError("the schedule deadlocks: " + graph[id].name() + " of gpu " +
                            std::to_string(graph[id].gpu) +
                            " waits for ever (for compute units that kernels polling flags keep?)");
        if (to_femtoseconds(tasks[id].end) == end_of_time) fail_at_end_of_time(graph[id]);
        result.makespan = std::max(result.makespan, tasks[id].end);
    }
    result.tasks = std::move(tasks);
    const std::chrono::duration<double, std::milli> wall = std::chrono::steady_clock::now() - begin;
    result.wall_ms = wall.count();
    return result;
}

void Engine::run_seeds(const TaskGraph& graph, CostView costs, const ResourceTable& resources,
                       std::uint64_t seeds, const std::function<void(EngineResult)>& each) const {
    for (std::uint64_t seed = 0; seed < seeds; ++seed) each(run(graph, costs, resources, seed));
}

void fail_at_end_of_time(const Task& task) {
    throw UserError(
        task.name() + " of gpu " + std::to_string(task.gpu) +
        " goes on beyond the end of simulated time, 9,223 s (2.56 hours): use smaller operands, or "
        "faster links and devices");
}

void require_simulable(const TaskGraph& graph, CostView costs, const ResourceTable& resources) {
    std::uint32_t next = 0;  // classes are numbered in the order of their first tasks
    for (TaskId id = 0; next < costs.classes().size(); ++id) {
        if (costs.class_of(id) != next) continue;
        if (to_femtoseconds(isolated_time(costs.classes()[next++], resources)) == end_of_time)
            fail_at_end_of_time(graph[id]);
    }
}

}  // namespace overlap
