#include "models/resources.hpp"

#include <algorithm>
#include <utility>

#include "sim/topology/device_copy_kernel.hpp"
#include "sim/topology/device_dma.hpp"
#include "sim/topology/device_losses.hpp"

namespace overlap {

ResourceTable::ResourceTable(const Topology& topology)
    : gpus_per_node_(topology.gpus_per_node()), several_nodes_(topology.nodes() > 1) {
    const DeviceSpec& device = topology.device();
    const bool by_peer = device.dma->queues == DmaQueues::by_peer;
    const int engines = std::min(device.dma->peer_engines, std::max(gpus_per_node_ - 1, 1));
    engines_ = by_peer ? engines : 1;
    const int servers = by_peer ? 1 : engines;
    const bool engine_units = device.interference->channels_per_engine_unit > 0;
    if (engine_units) before_dma_ = 4 + most_taken + 1;
    stride_ = before_dma_ + static_cast<std::size_t>(engines_);
    first_link_ = stride_ * static_cast<std::size_t>(topology.gpus());
    std::vector<Resource> resources;
    resources.reserve(first_link_ + topology.links().size());
    for (int gpu = 0; gpu < topology.gpus(); ++gpu) {
        const auto own = [&](ResourceKind kind, const std::string& suffix, double capacity) -> Resource& {
            const std::string& word = resource_kind_names[static_cast<std::size_t>(kind)];
            return resources.emplace_back(
                Resource{kind, gpu, word + "[" + std::to_string(gpu) + "]" + suffix, capacity});
        };
        own(ResourceKind::compute_units, "", device.compute_units).units =
            static_cast<int>(device.compute_units);
        own(ResourceKind::hbm, "", device.hbm.si());
        own(ResourceKind::remote_read, "", device.copy_kernel->remote_read.si());
        own(ResourceKind::clock, "", 1).limits_each = true;
        for (int taken = 1; engine_units && taken <= most_taken; ++taken)
            own(ResourceKind::engines, "[" + std::to_string(taken) + "]", 1).limits_each = true;
        if (engine_units) own(ResourceKind::channels, "", 1).limits_each = true;
        for (int engine = 0; engine < engines_; ++engine) {
            Resource& dma =
                own(ResourceKind::dma, "[" + std::to_string(engine) + "]", device.dma->engine.si() * servers);
            dma.units = servers;
            dma.order = device.dma->order;
        }
    }
    for (const Link& link : topology.links())
        resources.push_back({ResourceKind::link, -1, "link[" + link.name + "]", link.bandwidth.si()});
    resources_ = std::make_shared<const std::vector<Resource>>(std::move(resources));
}

ResourceTable ResourceTable::pooled(std::vector<std::uint32_t> pool_of, std::size_t pools) const {
    ResourceTable table(*this);
    table.pool_of_ = std::move(pool_of);
    table.pools_ = pools;
    return table;
}

ResourceId ResourceTable::dma_engine(int gpu, int peer) const {
    const int turn = ((peer - gpu - 1) % gpus_per_node_ + gpus_per_node_) % gpus_per_node_;
    return per_gpu(gpu) + before_dma_ + static_cast<std::size_t>(turn % engines_);
}

}  // namespace overlap
