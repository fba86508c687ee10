#include <numeric>

#include "sim/topology/network.hpp"

namespace overlap {
namespace {

// Leaf switches with `leaf_ports` NICs each; every leaf is connected to every spine. A leaf takes the NICs of
// whole nodes one after another ("nodes"), or NIC i of `leaf_ports` nodes ("rails": a rail-optimised network
// whose rails have a spine). A route goes up to the spine given by its destination: the destination's number,
// in the order of the leaves, mod spines (D-mod-k). All routes to a GPU therefore come down the same way, and
// if `spines` divides `leaf_ports`, every uplink of a leaf carries the same number of routes.
// Oversubscription: leaf_ports · bandwidth_GBps over spines · spine_GBps.
class FatTree final : public Network {
public:
    FatTree(ConfigObject& config, const LinkGroup& group, const ClusterSize& size, Wiring& wiring)
        : Network(group, size),
          by_rail_(group.leaves == Leaves::rails),
          size_(size),
          leaf_ports_(group.leaf_ports),
          spines_(group.spines) {
        const int dealt = by_rail_ ? size.nodes : size.gpus();
        if (dealt % leaf_ports_ != 0)
            config.fail("leaf_ports", "is " + std::to_string(leaf_ports_) + ", must divide the " +
                                          std::to_string(dealt) + (by_rail_ ? " NICs of a rail" : " NICs"));

        std::vector<VertexId> spines;
        for (int spine = 0; spine < spines_; ++spine)
            spines.push_back(wiring.add_vertex("spine" + std::to_string(spine)));
        for (int leaf = 0; leaf * leaf_ports_ < size.gpus(); ++leaf) {
            const VertexId vertex = wiring.add_vertex("leaf" + std::to_string(leaf));
            for (int port = 0; port < leaf_ports_; ++port)
                attach(gpu_at(leaf * leaf_ports_ + port), vertex, leaf, wiring);
            for (const VertexId spine : spines)
                uplinks_.push_back(wiring.join(vertex, spine, group.spine, group.hop));
        }
    }

    /// Nodes of the fewest leaves that share no node with others; by rail, those of a leaf of every rail.
    int period() const override {
        return by_rail_ ? leaf_ports_ : std::lcm(leaf_ports_, size_.gpus_per_node) / size_.gpus_per_node;
    }
    /// Leaves of 2 nodes, with as many spines for each of their ports, unless 8 nodes make up several whole leaves.
    Smaller smaller() const override {
        if (period() <= 4 && 8 % period() == 0) return {};
        const int ports = by_rail_ ? 2 : 2 * size_.gpus_per_node;
        return {8, {{"leaf_ports", ports}, {"spines", std::max(1, spines_ * ports / leaf_ports_)}}};
    }

private:
    /// NICs are numbered in the order of the leaves.
    int gpu_at(int nic) const {
        return by_rail_ ? nic % size_.nodes * size_.gpus_per_node + nic / size_.nodes : nic;
    }
    int nic_of(int gpu) const {
        return by_rail_ ? gpu % size_.gpus_per_node * size_.nodes + gpu / size_.gpus_per_node : gpu;
    }

    bool append_switches(int from, int to, int, int dst, LinkIds& links) const override {
        const int spine = nic_of(dst) % spines_;
        links.push_back(uplinks_[static_cast<std::size_t>(from * spines_ + spine)]);
        links.push_back(uplinks_[static_cast<std::size_t>(to * spines_ + spine)] + 1);
        return true;
    }

    bool by_rail_;
    ClusterSize size_;
    int leaf_ports_;
    int spines_;
    std::vector<std::size_t> uplinks_;  ///< by leaf and spine; the downlink has the next number
};

}  // namespace

std::shared_ptr<const Network> make_fat_tree(ConfigObject& config, const LinkGroup& group,
                                             const ClusterSize& size, Wiring& wiring) {
    return std::make_shared<FatTree>(config, group, size, wiring);
}

}  // namespace overlap
