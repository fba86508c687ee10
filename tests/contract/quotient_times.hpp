#pragma once

#include <algorithm>
#include <vector>

#include "sim/engine/engine.hpp"
#include "sim/run/run_config.hpp"

namespace overlap::test {

inline bool same_times(const std::vector<TaskTimes>& a, const std::vector<TaskTimes>& b) {
    const auto same = [](const TaskTimes& x, const TaskTimes& y) {
        return x.start == y.start && x.body == y.body && x.done == y.done && x.end == y.end &&
               x.unit_seconds == y.unit_seconds;
    };
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), same);
}

inline std::vector<TaskTimes> times_of(const TaskGraph& graph, CostView costs,
                                       const ResourceTable& resources) {
    return make_engine(default_engine)->run(graph, costs, resources).tasks;
}

}  // namespace overlap::test
