#include <algorithm>
#include <cmath>
#include <limits>

#include "models/cost_model.hpp"

namespace overlap {
namespace {

// A copy by a kernel on n compute units: launch, bytes at a rate that saturates with n, completion flag. The
// units are held for the whole body, also while the link stalls. Reads of remote memory share a cap of their
// own on devices that have one (MI300X: 149 GB/s from seven peers, against 323 GB/s of writes). Ignored: a
// kernel that has to wait for units that a persistent GEMM holds.
class KernelCopy final : public CostModel {
public:
    bool handles(const Task& task) const override {
        const auto* copy = std::get_if<CopyWork>(&task.work);
        return copy != nullptr && copy->agent == Agent::cu;
    }

    Cost cost(const Task& task, const Machine& machine) const override {
        const auto& copy = std::get<CopyWork>(task.work);
        const DeviceSpec::CopyKernel& kernel = machine.topology.device().copy_kernel;
        const ResourceTable& resources = machine.resources;
        const Route route = machine.topology.route(copy.src, copy.dst);

        Cost cost;
        cost.launch = kernel.launch;
        cost.setup = route.latency;
        cost.completion = kernel.completion;
        BytesPerSecond narrowest(std::numeric_limits<double>::max());
        for (const std::size_t link : route.links) {
            narrowest = std::min(narrowest, machine.topology.links()[link].bandwidth);
            cost.demands.push_back({resources.link(link), copy.bytes.si()});
        }
        const double units = std::max(copy.cus, 1);
        cost.body = copy.bytes / (narrowest * (1.0 - std::exp(-units * (kernel.link_per_cu / narrowest))));
        cost.demands.push_back({resources.hbm(copy.src), copy.bytes.si()});
        cost.demands.push_back({resources.hbm(copy.dst), copy.bytes.si()});
        if (copy.direction == Direction::pull)
            cost.demands.push_back({resources.remote_read(copy.dst), copy.bytes.si()});
        cost.holds.push_back({resources.compute_units(task.gpu), units});
        return cost;
    }
};

}  // namespace

std::unique_ptr<CostModel> make_kernel_copy() {
    return std::make_unique<KernelCopy>();
}

}  // namespace overlap
