#pragma once

#include <vector>

#include "sim/topology/network.hpp"
#include "sim/topology/wiring.hpp"

namespace overlap {

/// A GPU that works worse than the others: its clock is lower, or its links have lost lanes or carry the traffic of
/// others.
struct Degraded {
    static constexpr int all = -1;

    int gpu = 0;     ///< in its node
    int node = all;  ///< all: in every node
    double gemm_speed = 1;
    double links = 1;  ///< share left of the bandwidth of its links inside the node, both ways
    int to = all;      ///< only of the link to this GPU of the node
    double nic = 1;    ///< of its NIC
};

/// Reads the list `degraded` of a topology file, empty without it, and takes the bandwidth from the links. Throws
/// UserError.
std::vector<Degraded> degrade(ConfigObject& topology, const ClusterSize& size, bool has_network,
                              Wiring& wiring);
Json degraded_schema();

}  // namespace overlap
