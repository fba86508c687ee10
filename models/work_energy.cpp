#include "models/work_energy.hpp"

#include <algorithm>
#include <cmath>

#include "sim/topology/device_losses.hpp"

namespace overlap {
namespace {

/// Bytes that cross from one GPU to another, and what each takes of a kernel that moves it.
struct Moved {
    Bytes bytes;
    JoulesPerByte by_kernel;
};

Moved moved_by(const Work& work, int ranks, const DeviceEnergy& known) {
    if (const auto* copy = std::get_if<CopyWork>(&work)) {
        Moved moved{Bytes(), copy->agent == Agent::cu ? known.copy_kernel : JoulesPerByte()};
        for_each_way(*copy, [&](int, int) { moved.bytes += copy->bytes; });
        return moved;
    }
    if (const auto* library = std::get_if<CollectiveKernelWork>(&work)) {
        const double passes = library->kind == CollectiveKind::all_reduce ? 2 : 1;
        const int joined = library->group.members(ranks);
        return {passes * (joined - 1) / joined * library->operand, known.of_library()};
    }
    return {};
}

}  // namespace

std::optional<Energy> work_energy(const Task& task, const Cost& cost, const Machine& machine) {
    const auto& known = machine.topology.device().energy;
    if (!known || machine.topology.nodes() > 1) return std::nullopt;
    Energy energy;
    const double at_clock = std::pow(machine.gemm_speed, known->power_exponent - 1);
    if (const auto* gemm = std::get_if<GemmShape>(&task.work)) {
        const auto each = known->gemm.find(gemm->dtype);
        if (each == known->gemm.end()) return std::nullopt;
        energy.compute = at_clock * (gemm->flops() * each->second);
    }
    if (const auto* op = std::get_if<MemoryBoundWork>(&task.work); op != nullptr && op->flops > Flops()) {
        const auto each = known->gemm.find(op->dtype);
        if (each == known->gemm.end()) return std::nullopt;
        energy.compute = at_clock * (op->flops * each->second);
    }
    for (const Demand& demand : cost.demands)
        if (machine.resources[demand.resource].kind == ResourceKind::hbm)
            energy.hbm += Bytes(demand.amount) * known->hbm;
    if (const auto* sum = std::get_if<ReduceWork>(&task.work); sum != nullptr && sum->by_framework)
        energy.compute = at_clock * ((sum->parts + 1) * sum->bytes * known->framework_sum);
    const Moved moved = moved_by(task.work, machine.topology.gpus(), *known);
    energy.links = moved.bytes * known->link;
    energy.copy_kernels = moved.bytes * moved.by_kernel;
    return energy;
}

double power_limited_share(const TaskGraph& graph, const Machine& machine) {
    double most = 0;
    const Seconds busy = machine.sustained;
    if (busy == Seconds()) return most;
    const GemmShape* last = nullptr;  // cached: graphs have many GEMMs of few types
    for (TaskId id = 0; id < graph.size(); ++id) {
        const auto* gemm = std::get_if<GemmShape>(&graph[id].work);
        if (gemm == nullptr || (last != nullptr && last->dtype == gemm->dtype)) continue;
        most = std::max(most, busy / (busy + machine.calibration.gemm_for(gemm->dtype).sustained.time));
        last = gemm;
    }
    return most;
}

}  // namespace overlap
