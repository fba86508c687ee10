#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "models/costs.hpp"
#include "sim/core/task_graph.hpp"
#include "sim/topology/rotations.hpp"

namespace overlap {

/// One task of each class of tasks that are alike, and one resource of each class of resources.
struct Quotient {
    TaskGraph graph;                      ///< classes in the order of their first tasks
    ResourceTable resources;              ///< resources of one class are one pool
    std::vector<std::uint32_t> class_of;  ///< by task of the whole graph: its class, a task of `graph`
    Rotations rotations;

    /// Values for all tasks of the whole graph, from one value for each class.
    template <class Value>
    std::vector<Value> expanded(const std::vector<Value>& by_class) const {
        std::vector<Value> all;
        all.reserve(class_of.size());
        for (const std::uint32_t number : class_of) all.push_back(by_class[number]);
        return all;
    }
};

/// The quotient of a graph by the largest group of rotations under which everything that a simulation may depend on is
/// alike. None if there is no such group.
std::optional<Quotient> quotient_of(const TaskGraph& graph, CostView costs, const Topology& topology,
                                    const ResourceTable& resources);
/// The quotient by one group of rotations.
std::optional<Quotient> quotient_of(const TaskGraph& graph, CostView costs, const Rotations& rotations,
                                    const ResourceTable& resources);

}  // namespace overlap
