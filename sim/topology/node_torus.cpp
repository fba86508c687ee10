#include <functional>
#include <numeric>

#include "sim/topology/network.hpp"

namespace overlap {
namespace {

// One router for each node, with the node's NICs; routers are connected to their neighbours in every
// dimension, with wrap-around, and the first dimension varies fastest. Routes go dimension by dimension in
// the shorter direction. For a destination exactly half way round, even positions go up and odd ones down,
// which loads the links of a ring equally.
class NodeTorus final : public Network {
public:
    NodeTorus(ConfigObject& config, const LinkGroup& group, const ClusterSize& size, Wiring& wiring)
        : Network(group, size) {
        for (const std::int64_t extent : config.integers("dims", 1, size.nodes))
            dims_.push_back(static_cast<int>(extent));
        if (std::accumulate(dims_.begin(), dims_.end(), 1.0, std::multiplies<>()) != size.nodes)
            config.fail("dims", "must multiply to nodes, " + std::to_string(size.nodes));

        std::vector<VertexId> routers;
        for (int node = 0; node < size.nodes; ++node) {
            routers.push_back(wiring.add_vertex("router" + std::to_string(node)));
            for (int local = 0; local < size.gpus_per_node; ++local)
                attach(node * size.gpus_per_node + local, routers.back(), node, wiring);
        }
        const auto vertex = [&](int node) { return routers[static_cast<std::size_t>(node)]; };
        up_.resize(routers.size() * dims_.size());
        down_.resize(up_.size());
        for (int node = 0; node < size.nodes; ++node)
            for (std::size_t d = 0; d < dims_.size(); ++d) {
                const int next = neighbour(node, d, 1);
                if (next == node) continue;
                // With two routers along a dimension, the wrap-around is the same link.
                if (dims_[d] == 2 && next < node) {
                    up_[index(node, d)] = down_[index(node, d)];
                    down_[index(next, d)] = up_[index(next, d)];
                    continue;
                }
                const std::size_t link = wiring.join(vertex(node), vertex(next), group.link, group.hop);
                up_[index(node, d)] = link;
                down_[index(next, d)] = link + 1;
            }
    }

    /// One step along the slowest dimension; two where its extent is even, because a route half way round goes up
    /// from even places and down from odd ones.
    int period() const override { return stride(dims_.size() - 1) * (dims_.back() % 2 == 0 ? 2 : 1); }

private:
    int stride(std::size_t d) const {
        return std::accumulate(dims_.begin(), dims_.begin() + static_cast<std::ptrdiff_t>(d), 1,
                               std::multiplies<>());
    }
    int place(int node, std::size_t d) const { return node / stride(d) % dims_[d]; }
    int neighbour(int node, std::size_t d, int step) const {
        const int at = place(node, d);
        return node + ((at + step + dims_[d]) % dims_[d] - at) * stride(d);
    }
    std::size_t index(int node, std::size_t d) const {
        return static_cast<std::size_t>(node) * dims_.size() + d;
    }

    bool append_switches(int from, int to, int, int, LinkIds& links) const override {
        int at = from;
        for (std::size_t d = 0; d < dims_.size(); ++d) {
            const int ahead = (place(to, d) - place(at, d) + dims_[d]) % dims_[d];
            const bool up = 2 * ahead == dims_[d] ? place(at, d) % 2 == 0 : 2 * ahead < dims_[d];
            for (int steps = up ? ahead : dims_[d] - ahead; steps > 0 && ahead > 0; --steps) {
                links.push_back((up ? up_ : down_)[index(at, d)]);
                at = neighbour(at, d, up ? 1 : -1);
            }
        }
        return true;
    }

    std::vector<int> dims_;
    std::vector<std::size_t> up_,
        down_;  ///< links to the next and the previous router, by router and dimension
};

}  // namespace

std::shared_ptr<const Network> make_node_torus(ConfigObject& config, const LinkGroup& group,
                                               const ClusterSize& size, Wiring& wiring) {
    return std::make_shared<NodeTorus>(config, group, size, wiring);
}

}  // namespace overlap
