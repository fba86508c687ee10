#include <algorithm>

#include "models/cost_model.hpp"

namespace overlap {
namespace {

/// Bytes read and written, and the time lost to short runs as extra bytes.
struct Traffic {
    Bytes moved;
    Bytes paid;
};

Traffic traffic(const Task& task, const DeviceSpec& device) {
    if (const auto* copy = std::get_if<LocalCopyWork>(&task.work)) {
        const Bytes moved = 2.0 * copy->bytes;
        const double stretch =
            copy->run < copy->bytes ? (copy->run + device.dma.strided_run) / copy->run : 1.0;
        return {moved, moved * stretch};
    }
    if (const auto* reduce = std::get_if<ReduceWork>(&task.work)) {
        const Bytes moved = static_cast<double>(reduce->parts + 1) * reduce->bytes;
        return {moved, moved};
    }
    const auto& stream = std::get<MemoryBoundWork>(task.work);
    return {stream.read + stream.written, stream.read + stream.written};
}

// Packs, scatters, reductions and element-wise operators: kernels that stream HBM. They take the compute
// units that saturate HBM (bandwidth / what one unit streams) and share them with a GEMM as any kernel does.
// Ignored: hits in the last-level cache, so operands that a GEMM has just written cost their full traffic.
class Streaming final : public CostModel {
public:
    bool handles(const Task& task) const override {
        const TaskKind kind = task.kind();
        return kind == TaskKind::local_copy || kind == TaskKind::reduce || kind == TaskKind::memory_bound;
    }

    Cost cost(const Task& task, const Machine& machine) const override {
        const DeviceSpec& device = machine.topology.device();
        const Traffic bytes = traffic(task, device);
        const double units = std::min(device.compute_units, device.hbm / device.copy_kernel.cu);
        Cost cost;
        cost.launch = device.launch.kernel;
        cost.body = bytes.paid / std::min(device.hbm, units * device.copy_kernel.cu);
        cost.handoff = device.launch.dependency;
        cost.remote_handoff = device.launch.remote_dependency;
        cost.flag = device.launch.flag;
        cost.demands.push_back({machine.resources.compute_units(task.gpu), units * cost.body.si()});
        cost.demands.push_back({machine.resources.hbm(task.gpu), bytes.moved.si()});
        return cost;
    }
};

}  // namespace

std::unique_ptr<CostModel> make_streaming() {
    return std::make_unique<Streaming>();
}

}  // namespace overlap
