#pragma once

namespace overlap {

/// Numbers of tasks and edges of a task graph, which need not be built. Of type double, so
/// that no product overflows.
struct GraphSize {
    double tasks = 0;
    double edges = 0;

    /// Adds `count` tasks with `edges_each` edges into each of them.
    void add(double count, double edges_each = 0) {
        tasks += count;
        edges += count * edges_each;
    }
    GraphSize times(double count) const { return {count * tasks, count * edges}; }
    GraphSize& operator+=(const GraphSize& other) {
        tasks += other.tasks;
        edges += other.edges;
        return *this;
    }
};

}  // namespace overlap
