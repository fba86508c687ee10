#include "sim/effects.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "models/contention.hpp"
#include "models/gpu_spread.hpp"

namespace overlap {
namespace {

bool is_computation(TaskKind kind) {
    return kind == TaskKind::gemm || kind == TaskKind::memory_bound || kind == TaskKind::local_copy;
}

Cost scaled(Cost cost, double share) {
    cost.body = cost.body * share;
    for (Demand& demand : cost.demands) demand.amount *= share;
    return cost;
}

void remove_latencies(Cost& cost) {
    cost.launch = cost.queued_launch = cost.setup = cost.switch_over = cost.completion = Seconds();
    cost.polling.reset();
    cost.handoff = cost.remote_handoff = cost.flag = Seconds();
}

class Pricer {
public:
    Pricer(const Workload& workload, const Machine& machine, const CostModels& models, const Effects& effects)
        : workload_(workload),
          machine_(machine),
          models_(models),
          effects_(effects),
          slowest_(slowest_of(machine.topology.gpus(), machine.topology.device().variation.gpu_speed)) {}

    Cost price(const Task& task) {
        const TaskKind kind = task.kind();
        if (!effects_.computation && is_computation(kind)) return {};
        if (!effects_.packing && kind == TaskKind::local_copy) return {};
        return full_price(task, kind);
    }

private:
    // On its own, so that the cost is made where it is returned to: it is large.
    Cost full_price(const Task& task, TaskKind kind) {
        Cost cost = kind == TaskKind::gemm ? scaled(gemm(task), slowest_) : models_.cost(task, machine_);
        if (effects_.contention)
            add_interference(task, machine_, cost);
        else
            remove_contention(machine_, cost);
        if (!effects_.launch) remove_latencies(cost);
        return cost;
    }

    Cost gemm(const Task& task) {
        const auto& shape = std::get<GemmShape>(task.work);
        const Pair* pair = workload_.pair();
        if (!effects_.decomposition && pair != nullptr) {
            Task whole = task;
            whole.work = pair->gemm;
            return scaled(models_.cost(whole, machine_), shape.flops() / pair->gemm.flops());
        }
        return models_.cost(task, machine_);
    }

    const Workload& workload_;
    const Machine& machine_;
    const CostModels& models_;
    const Effects& effects_;
    double slowest_;  // schedules wait for the slowest GPU: its GEMMs are everybody's
};

}  // namespace

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

std::vector<Cost> price(const TaskGraph& graph, const Workload& workload, const Machine& machine,
                        const CostModels& models, const Effects& effects) {
    Pricer pricer(workload, machine, models, effects);
    std::vector<Cost> costs;
    costs.reserve(graph.size());
    for (TaskId id = 0; id < graph.size(); ++id) costs.push_back(pricer.price(graph[id]));
    return costs;
}

}  // namespace overlap
