#pragma once

#include "sim/core/task_graph.hpp"
#include "sim/topology/topology.hpp"

namespace overlap {

/// A group of renamings of GPUs: rotations of the nodes by multiples of `nodes`, and in every node rotations of its GPUs by
/// multiples of `locals`. GPUs that a rotation maps onto each other are an orbit; the first GPUs of the first nodes
/// represent the orbits. No rotation but the one by nothing keeps a GPU in its place.
class Rotations {
public:
    /// `nodes` divides the number of nodes, `locals` that of a node's GPUs.
    Rotations(const Topology& topology, int nodes, int locals)
        : per_node_(topology.gpus_per_node()), all_nodes_(topology.nodes()), nodes_(nodes), locals_(locals) {}

    int nodes() const { return nodes_; }
    int locals() const { return locals_; }
    /// GPUs in all, and in an orbit.
    int gpus() const { return per_node_ * all_nodes_; }
    int of_orbit() const { return gpus() / (nodes_ * locals_); }
    /// How many represent all.
    int representatives() const { return nodes_ * locals_; }
    /// The GPU that stands for `gpu`.
    int representative(int gpu) const {
        return gpu / per_node_ % nodes_ * per_node_ + gpu % per_node_ % locals_;
    }
    /// What the rotation that maps `gpu` to its representative maps `other` to.
    int seen_from(int gpu, int other) const {
        const int node = gpu / per_node_, local = gpu % per_node_;
        const int seen_node = turned(other / per_node_, node - node % nodes_, all_nodes_);
        return seen_node * per_node_ + turned(other % per_node_, local - local % locals_, per_node_);
    }
    /// The reverse: what the rotation that maps its representative to `gpu` maps `other` to.
    int as_seen_from(int gpu, int other) const {
        const int node = gpu / per_node_, local = gpu % per_node_;
        const int seen_node = (other / per_node_ + node - node % nodes_) % all_nodes_;
        return seen_node * per_node_ + (other % per_node_ + local - local % locals_) % per_node_;
    }

    friend bool operator==(const Rotations&, const Rotations&) = default;

private:
    static int turned(int place, int by, int all) { return place >= by ? place - by : place - by + all; }

    int per_node_, all_nodes_, nodes_, locals_;
};

/// The stream of its representative as which a stream of `gpu` is seen.
int seen_stream(int gpu, int stream, const Rotations& rotations);
/// `task` with the names that it has after the rotation that maps its GPU to the GPU's representative. Labels of shards
/// stay.
Task seen_by_representative(Task task, const Rotations& rotations);

}  // namespace overlap
