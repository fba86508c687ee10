#pragma once

#include <string>
#include <vector>

#include "sim/topology/topology.hpp"

namespace overlap {

enum class ResourceKind { compute_units, hbm, dma, remote_read, link };
inline const std::array<std::string, 5> resource_kind_names{"cu", "hbm", "dma", "remote_read", "link"};

using ResourceId = std::size_t;

/// Something that tasks share. Capacity is in compute units for compute_units, in bytes/s for the rest.
struct Resource {
    ResourceKind kind = ResourceKind::compute_units;
    int gpu = -1;  ///< whose it is; −1 for links
    std::string name;
    double capacity = 0;
};

/// All resources of a topology, with numbers by kind: cu[g], hbm[g], remote_read[g], dma[g][e], link[l].
/// A DMA engine is also a FIFO queue: it serves one copy at a time.
class ResourceTable {
public:
    explicit ResourceTable(const Topology& topology);

    const Resource& operator[](ResourceId id) const { return resources_[id]; }
    std::size_t size() const { return resources_.size(); }
    ResourceId compute_units(int gpu) const { return per_gpu(gpu); }
    ResourceId hbm(int gpu) const { return per_gpu(gpu) + 1; }
    ResourceId remote_read(int gpu) const { return per_gpu(gpu) + 2; }
    /// The engine of `gpu` that serves copies from and to `peer`, a GPU of the same node: peers are dealt to
    /// engines round robin, so with as many engines as peers each has its own (as amdkfd's recommended map of
    /// the MI300X has). Between nodes NICs move the data.
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
