#include <algorithm>
#include <limits>

#include "models/cost_model.hpp"

namespace overlap {
namespace {

// A kernel that stores its results straight into another GPU's memory. Bytes cross the links as the
// kernel makes them (a progress edge says when); the last bytes arrive after the route's latency. Compute
// units and memory traffic are those of the kernel itself: it writes to the peer instead of to its own
// memory, and where all ranks do the same, each receives as many bytes as it saves. Ignored: a kernel
// that stalls while the link is full.
class KernelStore final : public CostModel {
public:
    bool handles(const Task& task) const override {
        const auto* copy = std::get_if<CopyWork>(&task.work);
        return copy != nullptr && copy->stored;
    }

    Cost cost(const Task& task, const Machine& machine) const override {
        const auto& copy = std::get<CopyWork>(task.work);
        const Route route = machine.topology.route(copy.src, copy.dst);
        BytesPerSecond narrowest(std::numeric_limits<double>::max());
        Cost cost;
        for (const std::size_t link : route.links) {
            narrowest = std::min(narrowest, machine.topology.links()[link].bandwidth);
            cost.demands.push_back({machine.resources.link(link), copy.bytes.si()});
        }
        cost.body = copy.bytes / narrowest;
        cost.end = Completion{route.latency};
        return cost;
    }
};

}  // namespace

std::unique_ptr<CostModel> make_kernel_store() {
    return std::make_unique<KernelStore>();
}

}  // namespace overlap
