#include "sim/topology/network.hpp"

namespace overlap {
namespace {

// NIC i of every node is on leaf switch i. The leaves are not connected, so GPUs of different rails
// communicate by a hop inside a node.
class Rails final : public Network {
public:
    Rails(ConfigObject&, const LinkGroup& group, const ClusterSize& size, Wiring& wiring)
        : Network(group, size) {
        for (int rail = 0; rail < size.gpus_per_node; ++rail) {
            const VertexId leaf = wiring.add_vertex("leaf" + std::to_string(rail));
            for (int node = 0; node < size.nodes; ++node)
                attach(node * size.gpus_per_node + rail, leaf, rail, wiring);
        }
    }

private:
    bool append_switches(int, int, int, int, LinkIds&) const override { return false; }
};

}  // namespace

std::shared_ptr<const Network> make_rails(ConfigObject& config, const LinkGroup& group,
                                          const ClusterSize& size, Wiring& wiring) {
    return std::make_shared<Rails>(config, group, size, wiring);
}

}  // namespace overlap
