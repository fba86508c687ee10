#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/topology/topology.hpp"

namespace overlap {

enum class QueueOrder;  // sim/topology/device_dma.hpp

enum class ResourceKind { compute_units, hbm, dma, remote_read, clock, link, engines, channels };
inline const std::array<std::string, 8> resource_kind_names{"cu",    "hbm",  "dma",     "remote_read",
                                                            "clock", "link", "engines", "channels"};
/// Most compute units that library collectives take of each shader engine.
inline constexpr int most_taken = 3;

using ResourceId = std::size_t;

/// Something that tasks share. Capacity is in compute units (compute_units), fraction of full speed (clock, engines,
/// channels), or bytes/s (all others).
struct Resource {
    ResourceKind kind = ResourceKind::compute_units;
    int gpu = -1;  ///< its GPU; −1 for links
    std::string name;
    double capacity = 0;
    int units = 0;  ///< what tasks can claim: compute units, or copies that the DMA engines serve at once
    QueueOrder order{};        ///< in which tasks of equal priority get units; default: fifo
    bool limits_each = false;  ///< capacity is not shared: each user may use all of it
};

/// Smallest capacity that holds may leave.
constexpr double least_capacity(double nominal) {
    return std::min(1.0, nominal / 100);
}

/// All resources of a topology, numbered by kind: cu[g], hbm[g],
/// remote_read[g], clock[g], dma[g][e], link[l]. Where a library's collectives take units of shader engines: also
/// engines[g][t], channels[g] before the DMA engines.
class ResourceTable {
public:
    explicit ResourceTable(const Topology& topology);

    const Resource& operator[](ResourceId id) const { return (*resources_)[id]; }
    std::size_t size() const { return resources_->size(); }
    ResourceId compute_units(int gpu) const { return per_gpu(gpu); }
    ResourceId hbm(int gpu) const { return per_gpu(gpu) + 1; }
    ResourceId remote_read(int gpu) const { return per_gpu(gpu) + 2; }
    /// Relative speed of the GEMMs of `gpu`: 1 without holds.
    ResourceId clock(int gpu) const { return per_gpu(gpu) + 3; }
    bool counts_engines() const { return before_dma_ > 4; }
    /// Relative speed of the GEMMs of `gpu` while `taken` units of each shader engine, 1 to most_taken, are taken.
    ResourceId engines(int gpu, int taken) const {
        return per_gpu(gpu) + 3 + static_cast<std::size_t>(taken);
    }
    /// Relative speed of a channel of a library's collective: 1 without holds.
    ResourceId channels(int gpu) const { return per_gpu(gpu) + 4 + static_cast<std::size_t>(most_taken); }
    /// The DMA engine of `gpu` for copies from and to `peer`, a GPU of the same node (NICs move data between
    /// nodes). With DmaQueues::by_peer, peers are assigned to engines round robin, so with as many engines as
    /// peers each peer has its own (like amdkfd's recommended map of the MI300X). Otherwise all engines are
    /// one resource that serves as many copies at once.
    ResourceId dma_engine(int gpu, int peer) const;
    ResourceId link(std::size_t link) const { return first_link_ + link; }
    int dma_engines_in_use() const { return engines_; }
    /// Whether orders that the machine leaves open are drawn for one node and are the same in all.
    bool draws_by_node() const { return several_nodes_; }
    int gpus_per_node() const { return gpus_per_node_; }

    /// What is shared: resources of one pool are one, of which a task may use several (sim/quotient). Usually every
    /// resource is a pool of its own, of its number.
    std::size_t pool(ResourceId id) const { return pool_of_.empty() ? id : pool_of_[id]; }
    std::size_t pools() const { return pool_of_.empty() ? size() : pools_; }
    /// This table with other pools, numbered 0 … pools − 1; all resources of a pool are alike.
    ResourceTable pooled(std::vector<std::uint32_t> pool_of, std::size_t pools) const;

private:
    ResourceId per_gpu(int gpu) const { return static_cast<std::size_t>(gpu) * stride_; }

    std::shared_ptr<const std::vector<Resource>> resources_;
    std::vector<std::uint32_t> pool_of_;  ///< by resource; empty: each is its own
    std::size_t pools_ = 0;
    int gpus_per_node_ = 1;
    bool several_nodes_ = false;
    int engines_ = 0;
    std::size_t stride_ = 0, before_dma_ = 4;
    std::size_t first_link_ = 0;
};

}  // namespace overlap
