#include "sim/run/least_times.hpp"

#include <algorithm>

#include "sim/pricing/effects.hpp"

namespace overlap {
namespace {

class Bounds {
public:
    Bounds(const TaskGraph& graph, const Workload& workload, CostView costs, const ResourceTable& resources)
        : graph_(graph), costs_(costs), resources_(resources), bodies_(graph.size()) {
        if (workload.pair() == nullptr) operators_ = &std::get<std::vector<Operator>>(workload.content);
        std::vector<Seconds> alone;  // by class
        for (const Cost& cost : costs.classes()) alone.push_back(isolated_body(cost, resources));
        for (TaskId id = 0; id < graph.size(); ++id) bodies_[id] = alone[costs.class_of(id)];
    }

    Seconds of_side(bool computing) const {
        std::vector<Seconds> bodies(graph_.size()), streams(graph_.streams());
        std::vector<double> used(resources_.pools());
        for (TaskId id = 0; id < graph_.size(); ++id) {
            if (computes(graph_[id]) != computing) continue;
            bodies[id] = bodies_[id];
            streams[graph_.stream_number(id)] += bodies_[id];
            for (const Demand& demand : costs_[id].demands)
                used[resources_.pool(demand.resource)] += demand.amount;
        }
        Seconds longest = graph_.data_path(bodies);
        for (const Seconds stream : streams) longest = std::max(longest, stream);
        for (ResourceId id = 0; id < resources_.size(); ++id)
            if (!resources_[id].limits_each)
                longest = std::max(longest, Seconds(used[resources_.pool(id)] / resources_[id].capacity));
        return longest;
    }

    Seconds of_chains() const {
        if (operators_ == nullptr) return {};
        // Schedules may cut two operators into pieces that run by turns. Neither of the two ends, as a whole, before
        // `floors`: the end of the other one.
        std::vector<Seconds> starts(graph_.size()), ends(graph_.size()), floors(graph_.size());
        Seconds longest;
        for (TaskId id = 0; id < graph_.size(); ++id) {
            graph_.for_each_edge_into(id, [&](const Edge& edge) {
                const TaskId before = edge.predecessor;
                const Seconds over = std::max(ends[before], floors[before]);
                const bool same = graph_[before].op == graph_[id].op,
                           cut = may_be_cut(graph_[before], graph_[id]);
                if (same || cut) floors[id] = std::max(floors[id], same ? floors[before] : over);
                if (cut) {
                    starts[id] = std::max(starts[id], starts[before]);
                    return;
                }
                const Seconds reached = edge.from < 1 ? starts[before] + edge.from * bodies_[before]
                                        : same        ? ends[before]
                                                      : over;
                starts[id] = std::max(starts[id], reached - edge.to * bodies_[id]);
            });
            ends[id] = starts[id] + bodies_[id];
            longest = std::max({longest, ends[id], floors[id]});
        }
        return longest;
    }

private:
    /// The operator of a list that a task is part of; null for a pair.
    const Operator* operator_of(const Task& task) const {
        return operators_ == nullptr || task.op < 0 ? nullptr
                                                    : &(*operators_)[static_cast<std::size_t>(task.op)];
    }
    static bool is_collective(const Operator& op) { return std::holds_alternative<CollectiveWork>(op.work); }

    bool computes(const Task& task) const {
        if (task.kind() != TaskKind::reduce) return is_computation(task.kind());
        const Operator* op = operator_of(task);
        return op != nullptr && std::holds_alternative<ReductionWork>(op->work);
    }
    /// Whether a schedule may run them piece by piece: computation and the collective of its result, or a collective
    /// and the GEMM of its result.
    bool may_be_cut(const Task& before, const Task& after) const {
        const Operator *first = operator_of(before), *second = operator_of(after);
        if (first == nullptr || second == nullptr || first == second) return false;
        if (is_collective(*second)) return computes(before);
        return is_collective(*first) && std::holds_alternative<GemmShape>(second->work);
    }

    const TaskGraph& graph_;
    CostView costs_;
    const ResourceTable& resources_;
    const std::vector<Operator>* operators_ = nullptr;
    std::vector<Seconds> bodies_;
};

}  // namespace

LeastTimes least_times(const TaskGraph& graph, const Workload& workload, CostView costs,
                       const ResourceTable& resources) {
    const Bounds bounds(graph, workload, costs, resources);
    return {bounds.of_side(true), bounds.of_side(false), bounds.of_chains()};
}

}  // namespace overlap
