#pragma once

#include <optional>
#include <string>

#include "sim/run/scenario.hpp"
#include "sim/schedules/placement.hpp"

namespace overlap {

/// A task graph for other programs: with the places of its data, so that they can execute it, or with the reason why
/// the data have none.
struct Plan {
    const TaskGraph& graph;
    Json config;  ///< the resolved run config
    std::optional<Placement> placement;
    std::string not_placed;
};
/// `graph` is that of the scenario.
Plan plan_of(const Scenario& scenario, const TaskGraph& graph);
/// As configs/schema/plan.schema.json says. Streams are in order: a task also follows the task before it on its
/// (gpu, stream).
Json to_json(const Plan& plan);
Json plan_schema();
/// Graphviz, one cluster a GPU; stream order as dotted edges.
std::string to_dot(const TaskGraph& graph);

}  // namespace overlap
