#include "sim/topology/islands.hpp"

#include <algorithm>
#include <limits>

namespace overlap {
namespace {

constexpr double much_faster = 2;

/// Of the narrowest link on the way.
double rate(const Topology& topology, int src, int dst) {
    double least = std::numeric_limits<double>::infinity();
    for (const std::size_t link : topology.route(src, dst).links)
        least = std::min(least, topology.links()[link].bandwidth.si());
    return least;
}

bool are_islands(const Topology& topology, int size) {
    double within = std::numeric_limits<double>::infinity(), across = 0;
    for (int src = 0; src < topology.gpus(); ++src)
        for (int dst = 0; dst < topology.gpus(); ++dst) {
            if (src == dst) continue;
            if (src / size == dst / size)
                within = std::min(within, rate(topology, src, dst));
            else
                across = std::max(across, rate(topology, src, dst));
        }
    return within > much_faster * across;
}

}  // namespace

int island_size(const Topology& topology) {
    const int all = topology.gpus_per_node();
    // The first two GPUs are of one island, the first and the last are not: nearly all machines end here.
    if (topology.nodes() > 1 || all < 4 || rate(topology, 0, 1) <= much_faster * rate(topology, 0, all - 1))
        return all;
    for (int size = all / 2; size > 1; --size)
        if (all % size == 0 && are_islands(topology, size)) return size;
    return all;
}

}  // namespace overlap
