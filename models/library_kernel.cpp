#include "models/cost_model.hpp"

namespace overlap {
namespace {

// A collective by the vendor's library: measured latency and bus rate (DeviceSpec::Library), its channels
// held as compute units, its bytes spread evenly over the routes to all peers, each read and written once in
// HBM at either end. A library that has another protocol for small operands takes the faster one. Good for
// the sizes the lines were fitted to, which their sources say.
class LibraryKernel final : public CostModel {
public:
    bool handles(const Task& task) const override { return task.kind() == TaskKind::collective; }

    Cost cost(const Task& task, const Machine& machine) const override {
        const auto& work = std::get<CollectiveKernelWork>(task.work);
        const DeviceSpec& device = machine.topology.device();
        const auto fit = device.collective_library.collectives.find(work.kind);
        if (fit == device.collective_library.collectives.end()) {
            std::vector<std::string> known;
            for (const auto& [kind, line] : device.collective_library.collectives)
                known.push_back(name_of(kind));
            throw UserError("device " + device.name + " has no library measurement of " + name_of(work.kind) +
                            suggestion("", known));
        }
        const int ranks = machine.topology.gpus();
        const double passes = work.kind == CollectiveKind::all_reduce ? 2.0 : 1.0;
        const Bytes to_each_peer = passes / ranks * work.operand;

        const Bytes on_bus = static_cast<double>(ranks - 1) * to_each_peer;
        const auto time = [&](const DeviceSpec::Library::Line& line) {
            return line.latency + on_bus / line.bus;
        };
        DeviceSpec::Library::Line line = fit->second;
        if (const auto& small = fit->second.small; small && time(*small) < time(line)) line = *small;

        Cost cost;
        cost.launch = line.latency;
        cost.body = on_bus / line.bus;
        cost.handoff = device.launch.dependency;
        cost.remote_handoff = device.launch.remote_dependency;
        cost.flag = device.launch.flag;
        for (int peer = 0; peer < ranks; ++peer) {
            if (peer == task.gpu) continue;
            const Route route = machine.topology.route(task.gpu, peer);
            for (const std::size_t link : route.links)
                cost.demands.push_back({machine.resources.link(link), to_each_peer.si()});
            cost.demands.push_back({machine.resources.hbm(peer), to_each_peer.si()});
            cost.demands.push_back({machine.resources.hbm(task.gpu), to_each_peer.si()});
        }
        cost.holds.push_back({machine.resources.compute_units(task.gpu), device.collective_library.channels});
        return cost;
    }
};

}  // namespace

std::unique_ptr<CostModel> make_library_kernel() {
    return std::make_unique<LibraryKernel>();
}

}  // namespace overlap
