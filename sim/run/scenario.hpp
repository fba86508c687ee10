#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/run/config_folder.hpp"
#include "sim/schedules/schedule.hpp"

namespace overlap {

/// A run config with everything looked up, checked and filled in.
struct Scenario {
    std::shared_ptr<const Machine> machine;  ///< never null; scenarios share it
    Workload workload;
    SchedulePtr schedule;  ///< never null
    ScheduleParams params;
    std::string engine;
    int seeds = 1;  ///< simulations of what the machine leaves unspecified, with seeds 0 … seeds − 1
    std::vector<std::string> cost_models;
    std::vector<std::string> without;
    Json what_if = Json::object();  ///< how the machine differs from its files
    /// Where set, called after each simulation of a graph, by any thread: for showing progress.
    std::function<void()> simulated = nullptr;

    /// The resolved config: reading it back gives the same scenario.
    Json config() const;
    TaskGraph graph() const;
};

}  // namespace overlap
