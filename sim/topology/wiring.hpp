#pragma once

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "sim/core/units.hpp"

namespace overlap {

/// Routes are the paths that move this many bytes soonest on idle links.
inline constexpr Bytes routed_size{1048576.0};

/// One direction of a physical connection. Bandwidth is what transfers achieve, not the raw signalling rate.
struct Link {
    std::size_t id = 0;
    std::string name;
    BytesPerSecond bandwidth;
    Seconds latency;
};

/// Links in the order in which they are crossed; short ones need no allocation.
using LinkIds = boost::container::small_vector<std::size_t, 12>;

using VertexId = std::size_t;

/// GPUs, NICs and switches with their links, while a topology is being built.
class Wiring {
public:
    VertexId add_vertex(std::string name, bool is_nic = false);
    bool is_nic(VertexId vertex) const { return nics_[vertex]; }
    /// Connects two vertices in both directions; returns the link a → b, and the reverse link has the next
    /// number. Throws std::invalid_argument for a link from a vertex to itself and for a duplicate.
    std::size_t join(VertexId a, VertexId b, BytesPerSecond bandwidth, Seconds latency);

    struct Ends {
        VertexId from, to;
    };

    std::vector<Link> links;
    std::vector<Ends> ends;  ///< by link
    /// Sum of the bandwidths of the links that leave each vertex.
    std::vector<BytesPerSecond> egress;

private:
    void add_link(VertexId from, VertexId to, BytesPerSecond bandwidth, Seconds latency);

    std::vector<std::string> names_;
    std::vector<bool> nics_;
    std::unordered_set<std::uint64_t> joined_;
};

}  // namespace overlap
