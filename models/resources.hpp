#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "sim/topology/topology.hpp"

namespace overlap {

enum class ResourceKind { compute_units, hbm, dma, remote_read, clock, link };
inline const std::array<std::string, 6> resource_kind_names{"cu",          "hbm",   "dma",
                                                            "remote_read", "clock", "link"};

using ResourceId = std::size_t;

/// Something that tasks share. Capacity is in compute units for compute_units, in bytes/s for the rest, and a
/// share of full speed for clock.
struct Resource {
    ResourceKind kind = ResourceKind::compute_units;
    int gpu = -1;  ///< whose it is; −1 for links
    std::string name;
    double capacity = 0;
    int units = 0;  ///< what tasks can claim: compute units, or copies that DMA engines serve at once
    QueueOrder order = QueueOrder::fifo;  ///< of the tasks that wait for units, priority apart
    bool limits_each = false;             ///< capacity is not shared: every user may use all of it
};

/// What holds leave of a resource at least.
constexpr double least_capacity(double nominal) {
    return std::min(1.0, nominal / 100);
}

/// All resources of a topology, with numbers by kind: cu[g], hbm[g], remote_read[g], clock[g], dma[g][e],
/// link[l].
class ResourceTable {
public:
    explicit ResourceTable(const Topology& topology);

    const Resource& operator[](ResourceId id) const { return resources_[id]; }
    std::size_t size() const { return resources_.size(); }
    ResourceId compute_units(int gpu) const { return per_gpu(gpu); }
    ResourceId hbm(int gpu) const { return per_gpu(gpu) + 1; }
    ResourceId remote_read(int gpu) const { return per_gpu(gpu) + 2; }
    /// Speed at which the GEMMs of `gpu` run, 1 but for holds.
    ResourceId clock(int gpu) const { return per_gpu(gpu) + 3; }
    /// The engine of `gpu` that serves copies from and to `peer`, a GPU of the same node (between
    /// nodes NICs move the data). Engines that are told to
    /// (DmaQueues::by_peer) take peers round robin, so with as many engines as peers each has its own (as
    /// amdkfd's recommended map of the MI300X has); else all engines are one resource, which serves as many
    /// copies at once.
    ResourceId dma_engine(int gpu, int peer) const;
    ResourceId link(std::size_t link) const { return first_link_ + link; }
    int dma_engines_in_use() const { return engines_; }

private:
    ResourceId per_gpu(int gpu) const { return static_cast<std::size_t>(gpu) * stride_; }

    std::vector<Resource> resources_;
    int gpus_per_node_ = 1;
    int engines_ = 0;
    std::size_t stride_ = 0;
    std::size_t first_link_ = 0;
};

}  // namespace overlap
