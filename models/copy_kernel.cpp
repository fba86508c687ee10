#include <algorithm>
#include <cmath>
#include <limits>

#include "models/cost_model.hpp"
#include "sim/topology/device_copy_kernel.hpp"
#include "sim/topology/device_launch.hpp"

namespace overlap {
namespace {

/// Rate of users that want `wanted` on a link of rate `link`.
BytesPerSecond saturating(BytesPerSecond wanted, BytesPerSecond link, double sharpness) {
    const double x = std::pow(wanted / link, sharpness);
    return link * std::pow(-std::expm1(-x), 1 / sharpness);
}

/// Whether copies to different GPUs of the node leave on one link.
bool shares_links(const Topology& topology, const CopyWork& copy) {
    const int node = topology.node_of(copy.src) * topology.gpus_per_node();
    int other = node;
    while (other == copy.src || other == copy.dst) ++other;
    return topology.route(copy.src, other).links.front() == topology.route(copy.src, copy.dst).links.front();
}

// A copy by a kernel on n compute units: launch (none if a running kernel waits for a flag), bytes at a rate
// that saturates with n, completion flag. The units are held for the whole body, even while the link stalls.
// Requests and acknowledgements use the links of the other direction. Remote reads share a cap on devices
// that have one (MI300X: 149 GB/s from seven peers, against 323 GB/s of writes). Ignored:
// - loop remainders where thread blocks have few bytes (H200: 256 KiB by 8 blocks takes 1.7 us
//   longer than by 4 or 16);
// - that pushes from all to all lose nothing in some runs and up to a quarter in others, more often by few
//   blocks (H200, 64 MiB by 8 blocks: 603 to 774 us): crossing_loss is what they lose on average;
// - 5 to 10 us that an all-to-all takes longer than copies from one GPU to all (H200, 1 MiB and more).
class KernelCopy final : public CostModel {
public:
    bool handles(const Task& task) const override {
        const auto* copy = std::get_if<CopyWork>(&task.work);
        return copy != nullptr && copy->agent == Agent::cu && !copy->stored;
    }

    Cost cost(const Task& task, const Machine& machine) const override {
        const auto& copy = std::get<CopyWork>(task.work);
        const DeviceCopyKernel& kernel = *machine.topology.device().copy_kernel;
        const ResourceTable& resources = machine.resources;
        const Route route = machine.topology.route(copy.src, copy.dst);

        Cost cost;
        const bool pull = copy.direction == Direction::pull;
        cost.end = Completion{kernel.completion, kernel.completions_apart};
        if (!copy.prelaunched) {
            cost.launch = {kernel.launch, kernel.queued_launch};
            std::get<Completion>(cost.end).event = machine.topology.device().launch->event;
        }
        // Another GPU waits for a copy kernel as long as for any event, if remote_dependency_us was measured; the
        // kernel's completion is a part of that wait.
        const DeviceLaunch& launch = *machine.topology.device().launch;
        if (launch.remote_dependency > launch.dependency)
            cost.handoffs.other_gpu = std::max(launch.remote_dependency - kernel.completion, Seconds());
        cost.setup = route.latency;
        BytesPerSecond narrowest(std::numeric_limits<double>::max());
        const bool all_pairs = copy.all_pairs && !pull && shares_links(machine.topology, copy);
        const double on_link = (1 + kernel.link_overhead) / (1 - (all_pairs ? kernel.crossing_loss : 0));
        for (const std::size_t link : route.links) {
            narrowest = std::min(narrowest, machine.topology.links()[link].bandwidth);
            cost.demands.push_back({resources.link(link), on_link * copy.bytes.si()});
        }
        const int blocks = std::max(copy.cus, 1);
        const double units = blocks;
        cost.body = copy.bytes / saturating(units * kernel.link_per_cu,
                                            narrowest / (1 + kernel.link_overhead), kernel.saturation);
        if (kernel.blocks_per_unit > 1)
            cost.claim = {.resource = resources.compute_units(task.gpu),
                          .most = blocks,
                          .parts = Blocks{.count = blocks,
                                          .together = kernel.blocks_per_unit,
                                          .unit = copy.bytes / kernel.link_per_cu,
                                          .beside_tiles = kernel.beside.rate_beside_gemms,
                                          .in_flight = pull ? kernel.peer_loads : kernel.local_loads,
                                          .paired = kernel.beside.paired_blocks,
                                          .beside_streaming = kernel.beside.rate_beside_sums}};
        cost.demands.push_back({resources.hbm(copy.src), copy.bytes.si()});
        cost.demands.push_back({resources.hbm(copy.dst), copy.bytes.si()});
        if (pull) cost.demands.push_back({resources.remote_read(copy.dst), copy.bytes.si()});
        cost.holds.push_back({resources.compute_units(task.gpu), units});
        return cost;
    }
};

}  // namespace

std::unique_ptr<CostModel> make_kernel_copy() {
    return std::make_unique<KernelCopy>();
}

}  // namespace overlap
