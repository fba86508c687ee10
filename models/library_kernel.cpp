#include <cmath>
#include <iterator>
#include <utility>

#include "models/cost_model.hpp"

namespace overlap {
namespace {

// A collective by the vendor's library: measured latency and bus rate (DeviceSpec::Library), which depends on
// the channels that it is given; these are held as compute units, its bytes spread evenly over the routes to
// all peers, each read and written once in HBM at either end. A library that has another protocol for small
// operands takes the faster one (with all channels: nothing is known of fewer). Good for the sizes the lines
// were fitted to, which their sources say.
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
        const DeviceSpec::Library& library = device.collective_library;
        const double channels = work.cus > 0 ? work.cus : library.channels;
        const int ranks = machine.topology.gpus();
        const double passes = work.kind == CollectiveKind::all_reduce ? 2.0 : 1.0;
        const Bytes to_each_peer = passes / ranks * work.operand;

        const Bytes on_bus = static_cast<double>(ranks - 1) * to_each_peer;
        const auto time = [&](Seconds latency, BytesPerSecond bus) { return latency + on_bus / bus; };
        Seconds latency = fit->second.latency;
        BytesPerSecond bus = bus_rate(fit->second, channels, work.kind, device);
        const auto& small = fit->second.small;
        if (small && channels == library.channels && time(small->latency, small->bus) < time(latency, bus)) {
            latency = small->latency;
            bus = small->bus;
        }

        Cost cost;
        cost.launch = latency;
        cost.body = on_bus / bus;
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
        cost.holds.push_back({machine.resources.compute_units(task.gpu), channels});
        return cost;
    }

private:
    // Between measured numbers of channels the rate is a power of the number; below the least it is
    // proportional to it.
    static BytesPerSecond bus_rate(const DeviceSpec::Library::Fit& fit, double channels, CollectiveKind kind,
                                   const DeviceSpec& device) {
        const double all = device.collective_library.channels;
        if (channels == all) return fit.bus;
        if (fit.bus_by_channels.empty())
            throw UserError("device " + device.name + " has no library measurement of " + name_of(kind) +
                            " with fewer channels than " + std::to_string(std::llround(all)));
        const auto above = fit.bus_by_channels.lower_bound(static_cast<int>(channels));
        const auto [more, high] = above == fit.bus_by_channels.end()
                                      ? std::pair(all, fit.bus)
                                      : std::pair(static_cast<double>(above->first), above->second);
        if (above == fit.bus_by_channels.begin()) return high * (channels / more);
        const auto& [fewer, low] = *std::prev(above);
        return low * std::pow(high / low, std::log(channels / fewer) / std::log(more / fewer));
    }
};

}  // namespace

std::unique_ptr<CostModel> make_library_kernel() {
    return std::make_unique<LibraryKernel>();
}

}  // namespace overlap
