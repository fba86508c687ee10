#include "sim/effects.hpp"

#include <algorithm>

#include "models/contention.hpp"
#include "models/gpu_spread.hpp"

namespace overlap {
namespace {

void scale(Cost& cost, double share) {
    cost.body = cost.body * share;
    for (Demand& demand : cost.demands) demand.amount *= share;
}

void remove_latencies(Cost& cost) {
    cost.launch = cost.queued_launch = cost.setup = cost.switch_over = cost.completion = Seconds();
    cost.polling.reset();
    cost.handoff = cost.remote_handoff = cost.flag = Seconds();
}

}  // namespace

bool is_computation(TaskKind kind) {
    return kind == TaskKind::gemm || kind == TaskKind::memory_bound || kind == TaskKind::local_copy;
}

Effects without(std::span<const std::string> names) {
    Effects effects;
    const std::array<bool*, 4> switches{&effects.contention, &effects.launch, &effects.packing,
                                        &effects.decomposition};
    for (const std::string& name : names) {
        const auto found = std::find(effect_names.begin(), effect_names.end(), name);
        if (found == effect_names.end())
            throw UserError("without: '" + name + "' is no effect" + suggestion(name, effect_names));
        *switches[static_cast<std::size_t>(found - effect_names.begin())] = false;
    }
    return effects;
}

Pricer::Pricer(const TaskGraph& graph, const Workload& workload, const Machine& machine,
               const CostModels& models)
    : graph_(graph), workload_(workload), machine_(machine) {
    // Schedules wait for the slowest GPU: its GEMMs are everybody's.
    const double slowest = slowest_of(machine.topology.gpus(), machine.topology.device().variation.gpu_speed);
    alone_.reserve(graph.size());
    for (TaskId id = 0; id < graph.size(); ++id) {
        alone_.push_back(models.cost(graph[id], machine));
        if (graph[id].kind() == TaskKind::gemm) scale(alone_.back(), slowest);
        has_packing_ = has_packing_ || graph[id].kind() == TaskKind::local_copy;
        library_runs_ = library_runs_ || graph[id].kind() == TaskKind::collective;
    }
    const Pair* pair = workload.pair();
    if (pair == nullptr) return;
    for (int gpu = 0; gpu < machine.topology.gpus(); ++gpu) {
        wholes_.push_back(models.cost(Task{pair->gemm, gpu, compute_stream}, machine));
        scale(wholes_.back(), slowest);
    }
}

Cost Pricer::price(TaskId id, const Effects& effects) const {
    const Task& task = graph_[id];
    const bool part = task.kind() == TaskKind::gemm && !effects.decomposition && has_decomposition();
    Cost cost = part ? wholes_[static_cast<std::size_t>(task.gpu)] : alone_[id];
    if (part) scale(cost, std::get<GemmShape>(task.work).flops() / workload_.pair()->gemm.flops());
    if (effects.contention)
        add_interference(task, machine_, cost, library_runs_);
    else
        remove_contention(machine_, cost);
    if (!effects.launch) remove_latencies(cost);
    return cost;
}

std::vector<Cost> Pricer::price(const Effects& effects) const {
    std::vector<Cost> costs;
    costs.reserve(graph_.size());
    for (TaskId id = 0; id < graph_.size(); ++id) {
        const TaskKind kind = graph_[id].kind();
        const bool free = (!effects.computation && is_computation(kind)) ||
                          (!effects.packing && kind == TaskKind::local_copy);
        if (free)
            costs.emplace_back();
        else
            costs.push_back(price(id, effects));
    }
    return costs;
}

std::vector<Cost> price(const TaskGraph& graph, const Workload& workload, const Machine& machine,
                        const CostModels& models, const Effects& effects) {
    return Pricer(graph, workload, machine, models).price(effects);
}

}  // namespace overlap
