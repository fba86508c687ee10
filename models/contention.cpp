#include "models/contention.hpp"

#include <algorithm>

namespace overlap {

void add_interference(const Task& task, const Machine& machine, Cost& cost) {
    const DeviceSpec& device = machine.topology.device();
    const ResourceTable& resources = machine.resources;
    if (const auto* copy = std::get_if<CopyWork>(&task.work)) {
        const double lost = copy->agent == Agent::dma ? device.interference.compute_lost_to_dma
                                                      : device.interference.compute_lost_to_copy_kernels;
        if (lost == 0) return;
        for (const int gpu : {copy->src, copy->dst}) {
            const Seconds at_full_rate = copy->bytes / (2.0 * machine.topology.egress(gpu));
            cost.demands.push_back(
                {resources.compute_units(gpu), lost * device.compute_units * at_full_rate.si()});
        }
    } else if (task.kind() == TaskKind::gemm && device.interference.dma_lost_to_compute > 0) {
        const double share = device.interference.dma_lost_to_compute;
        for (int turn = 0; turn < resources.dma_engines_in_use(); ++turn) {
            const ResourceId engine = resources.dma_engine(task.gpu, task.gpu + 1 + turn);
            cost.demands.push_back({engine, share * resources[engine].capacity * cost.body.si()});
        }
    }
}

void remove_contention(const Machine& machine, Cost& cost) {
    cost.body = isolated_body(cost, machine.resources);
    const auto shared_by_both = [&](const Demand& demand) {
        const ResourceKind kind = machine.resources[demand.resource].kind;
        return kind == ResourceKind::compute_units || kind == ResourceKind::hbm;
    };
    std::erase_if(cost.demands, shared_by_both);
    cost.holds.clear();
}

}  // namespace overlap
