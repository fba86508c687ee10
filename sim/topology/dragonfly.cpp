#include <numeric>

#include "sim/topology/network.hpp"

namespace overlap {
namespace {

// Routers with `router_ports` NICs each, in groups of `group_routers` fully connected routers. Each router
// has `global_links` to other groups, and a group's links are spread evenly over the other groups: port q of
// group g (on its router q / global_links) leads to group g + 1 + q mod (groups − 1). Kim, Dally, Scott,
// Abts, "Technology-Driven, Highly-Scalable Dragonfly Topology", ISCA 2008. A route is minimal in groups: at
// most a local link, a global link and a local link. Of n parallel global links a pair uses number (src +
// dst) mod n, the same in both directions. Ignored: adaptive routes of real networks, which detour through a
// third group when the direct links are full.
class Dragonfly final : public Network {
public:
    Dragonfly(ConfigObject& config, const LinkGroup& group, const ClusterSize& size, Wiring& wiring)
        : Network(group, size),
          per_node_(size.gpus_per_node),
          router_ports_(group.router_ports),
          routers_(group.group_routers) {
        const int group_size = router_ports_ * routers_;
        groups_ = size.gpus() / group_size;
        if (size.gpus() % group_size != 0 || groups_ < 2)
            config.fail("group_routers", "gives groups of " + std::to_string(group_size) +
                                             " NICs, but 2 or more whole groups must share " +
                                             std::to_string(size.gpus()));
        global_links_ = static_cast<int>(config.integer("global_links", 1, groups_ - 1));
        if (routers_ * global_links_ % (groups_ - 1) != 0)
            config.fail("global_links", "gives a group " + std::to_string(routers_ * global_links_) +
                                            " links, which must be dealt evenly to " +
                                            std::to_string(groups_ - 1) + " other groups");
        parallel_ = routers_ * global_links_ / (groups_ - 1);
        wire(group, wiring);
    }

    /// Nodes of the fewest groups that share no node with others.
    int period() const override { return std::lcm(router_ports_ * routers_, per_node_) / per_node_; }
    /// Groups of 2 routers, or of as many more as make up whole nodes. Two groups have one link between them if two
    /// groups of this network have one, and otherwise one for each router.
    Smaller smaller() const override {
        int routers = std::min(2, routers_);
        while (routers < routers_ && router_ports_ * routers % per_node_ != 0) ++routers;
        const int nodes = std::max(1, router_ports_ * routers / per_node_);
        int others = routers;  // other groups
        while (others < 4 || (others + 1) * nodes < 8) others += routers;
        return {(others + 1) * nodes,
                {{"group_routers", routers}, {"global_links", parallel_ == 1 ? others / routers : others}}};
    }

private:
    void wire(const LinkGroup& group, Wiring& wiring) {
        std::vector<VertexId> vertices;
        for (int router = 0; router < groups_ * routers_; ++router) {
            vertices.push_back(wiring.add_vertex("router" + std::to_string(router)));
            for (int port = 0; port < router_ports_; ++port)
                attach(router * router_ports_ + port, vertices.back(), router, wiring);
        }
        const auto vertex = [&](int router) { return vertices[static_cast<std::size_t>(router)]; };
        local_.resize(vertices.size() * static_cast<std::size_t>(routers_));
        for (int a = 0; a < groups_ * routers_; ++a)
            for (int b = a + 1; b / routers_ == a / routers_ && b < groups_ * routers_; ++b) {
                const std::size_t link = wiring.join(vertex(a), vertex(b), group.local, group.hop);
                local_[local_index(a, b)] = link;
                local_[local_index(b, a)] = link + 1;
            }
        global_.resize(vertices.size() * static_cast<std::size_t>(global_links_));
        for (int a = 0; a < groups_; ++a)
            for (int b = a + 1; b < groups_; ++b)
                for (int i = 0; i < parallel_; ++i) {
                    const std::size_t link =
                        wiring.join(vertex(exit(a, b, i)), vertex(exit(b, a, i)), group.global, group.hop);
                    global_[global_index(a, b, i)] = link;
                    global_[global_index(b, a, i)] = link + 1;
                }
    }

    /// Port of group `from` for its i-th link to group `to`.
    int port(int from, int to, int i) const {
        return i * (groups_ - 1) + (to - from + groups_) % groups_ - 1;
    }
    /// The router of that port.
    int exit(int from, int to, int i) const { return from * routers_ + port(from, to, i) / global_links_; }
    std::size_t global_index(int from, int to, int i) const {
        return static_cast<std::size_t>(from * routers_ * global_links_ + port(from, to, i));
    }
    std::size_t local_index(int a, int b) const {
        return static_cast<std::size_t>(a * routers_ + b % routers_);
    }

    bool append_switches(int from, int to, int src, int dst, LinkIds& links) const override {
        const auto within = [&](int a, int b) {
            if (a != b) links.push_back(local_[local_index(a, b)]);
        };
        const int out = from / routers_, in = to / routers_;
        if (out == in) {
            within(from, to);
            return true;
        }
        const int i = (src + dst) % parallel_;
        within(from, exit(out, in, i));
        links.push_back(global_[global_index(out, in, i)]);
        within(exit(in, out, i), to);
        return true;
    }

    int per_node_;
    int router_ports_;
    int routers_;           ///< of a group
    int global_links_ = 0;  ///< of a router
    int groups_ = 0;
    int parallel_ = 0;  ///< links between two groups
    std::vector<std::size_t> local_, global_;
};

}  // namespace

std::shared_ptr<const Network> make_dragonfly(ConfigObject& config, const LinkGroup& group,
                                              const ClusterSize& size, Wiring& wiring) {
    return std::make_shared<Dragonfly>(config, group, size, wiring);
}

}  // namespace overlap
