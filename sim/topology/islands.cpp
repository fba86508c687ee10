#include "sim/topology/islands.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "sim/topology/device_dma.hpp"

namespace overlap {
namespace {

/// The bandwidth of the narrowest link on the way.
double rate(const Topology& topology, int src, int dst) {
    double least = std::numeric_limits<double>::infinity();
    for (const std::size_t link : topology.route(src, dst).links)
        least = std::min(least, topology.links()[link].bandwidth.si());
    return least;
}

/// Whether other GPUs send the data on. Links are called "link[gpu0->gpu3]".
bool passes_a_gpu(const Topology& topology, int src, int dst) {
    const LinkIds links = topology.route(src, dst).links;
    return std::any_of(links.begin(), links.end() - 1, [&](std::size_t link) {
        return topology.links()[link].name.find("->gpu") != std::string::npos;
    });
}

bool are_islands(const Topology& topology, int size) {
    double within = std::numeric_limits<double>::infinity(), across = 0;
    for (int src = 0; src < topology.gpus(); ++src)
        for (int dst = 0; dst < topology.gpus(); ++dst) {
            if (src == dst) continue;
            if (src % size == dst % size && passes_a_gpu(topology, src, dst)) return false;
            if (src / size == dst / size)
                within = std::min(within, rate(topology, src, dst));
            else
                across = std::max(across, rate(topology, src, dst));
        }
    return within > across;
}

/// What a phase of equal pieces keeps busy: seconds a byte of a piece.
class Load {
public:
    Load(const Topology& topology, bool by_dma)
        : topology_(topology),
          engines_(by_dma ? topology.device().dma->peer_engines : topology.gpus()),
          links_(topology.links().size()),
          senders_(static_cast<std::size_t>(topology.gpus())) {}

    void add(int src, int dst, double pieces) {
        for (const std::size_t link : topology_.route(src, dst).links)
            links_[link] += pieces / topology_.links()[link].bandwidth.si();
        senders_[static_cast<std::size_t>(src)] += pieces / rate(topology_, src, dst) / engines_;
    }
    double longest() const {
        return std::max(*std::ranges::max_element(links_), *std::ranges::max_element(senders_));
    }

private:
    const Topology& topology_;
    double engines_;
    std::vector<double> links_, senders_;
};

}  // namespace

int island_size(const Topology& topology) {
    const int all = topology.gpus_per_node();
    // The first two GPUs are of one island, the first and the last are not: nearly all machines end here.
    if (topology.nodes() > 1 || all < 4 || rate(topology, 0, 1) <= rate(topology, 0, all - 1)) return all;
    for (int size = all / 2; size > 1; --size)
        if (all % size == 0 && are_islands(topology, size)) return size;
    return all;
}

bool gains_by_crossing_once(const Topology& topology, bool by_dma) {
    const int size = island_size(topology), count = topology.gpus() / size;
    if (topology.nodes() > 1 || count == 1) return false;
    Load direct(topology, by_dma), crossing(topology, by_dma), sending_on(topology, by_dma);
    for (int src = 0; src < topology.gpus(); ++src)
        for (int dst = 0; dst < topology.gpus(); ++dst) {
            if (src == dst) continue;
            const bool inside = src / size == dst / size, on_rail = src % size == dst % size;
            direct.add(src, dst, 1);
            if (inside || on_rail) crossing.add(src, dst, 1);
            if (inside) sending_on.add(src, dst, count - 1);
        }
    return crossing.longest() + sending_on.longest() < direct.longest();
}

}  // namespace overlap
