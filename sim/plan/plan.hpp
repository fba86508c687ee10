#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/schedules/placement.hpp"

namespace overlap {

/// How replay measures a plan (models/calibration/hip/replay).
struct PlanMeasure {
    int repeats = 0;  ///< 0: as replay is told
    int warm_ups = 2;
    bool at_peak_clock = true, cold_caches = true;
    bool marks = false;

    friend bool operator==(const PlanMeasure&, const PlanMeasure&) = default;
};

/// A task graph as a file: what GPUs do, on which streams, in which order (sim/plan/format.md). Without the calls of
/// hosts, which a run adds.
struct Plan {
    std::string origin;       ///< file, or "plan"
    std::string description;  ///< for people
    Json config =
        Json::object();  ///< run config that the plan is of, or a part of it: the workload, at least
    int gpus = 0;
    TaskGraph graph;
    std::vector<std::string> names;      ///< by task, as the plan calls it; empty: Task::name()
    std::optional<Placement> placement;  ///< of the data of all tasks
    std::string not_placed;              ///< why there is none, as far as the plan says
    bool spans = false;                  ///< for replay: record the times of tasks
    PlanMeasure measure = {};
    Json given = {};  ///< what a run config says: its file, or all of it; null if neither

    std::string name_of(TaskId id) const {
        return names.empty() || names[id].empty() ? graph[id].name() : names[id];
    }
    /// Whether it says what work it does, so that `serial` can do the same.
    bool has_workload() const { return config.contains("workload"); }
};
using PlanPtr = std::shared_ptr<const Plan>;

/// Reads a plan and checks it: no cycles, streams and places that there are, data that are written before they are
/// read. Throws UserError in one line.
Plan read_plan(const Json& json, const std::string& origin);
/// Reads a plan file, which may be compressed by gzip.
Plan read_plan_file(const std::filesystem::path& path);

/// Throws UserError if a machine can't do it: too few GPUs, memory or compute units, no DMA commands, no such groups.
void require_fits(const Plan& plan, const Topology& topology);
/// Throws UserError if a task says that it is of an operator that `workload` has not.
void require_operators(const Plan& plan, const Workload& workload);

/// A plan file's content (configs/schema/plan.schema.json). Tasks that ranks do alike stand there once, unless `whole`.
Json to_json(const Plan& plan, bool whole = false);
Json plan_schema();
/// Graphviz, one cluster a GPU; stream order as dotted edges.
std::string to_dot(const TaskGraph& graph);

}  // namespace overlap
