#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <utility>

#include "models/library_kernel.hpp"
#include "models/settled_clock.hpp"
#include "sim/topology/device_launch.hpp"
#include "sim/topology/device_library.hpp"
#include "sim/topology/islands.hpp"

namespace overlap {
namespace {

// A collective by the vendor's library: measured latency and bus rate (DeviceLibrary), which depends on the
// number of channels. Channels are held as compute units. The bytes are spread evenly over the routes to all peers
// and use HBM once at either end. A group of some GPUs of a node takes the lines of all of them, its bus rate in
// proportion to the links that it has (an estimate: libraries use each link alike). A library with further protocols
// for small operands takes the fastest one (measured with all channels only). On a number of GPUs with times of its
// own those hold. Valid for the operand sizes of the fits, which their sources state. A simulated library that goes
// round a ring (arXiv 2401.16677) takes its rate from bandwidths, plus the latency of each step and the exposed last
// sum.
class LibraryKernel final : public CostModel {
public:
    bool handles(const Task& task) const override { return task.kind() == TaskKind::collective; }

    Cost cost(const Task& task, const Machine& machine) const override {
        const auto& work = std::get<CollectiveKernelWork>(task.work);
        const DeviceSpec& device = machine.topology.device();
        if (work.kernel == CollectiveKernel::deepep) return exchange_cost(work, task.gpu, machine);
        if (work.kernel != CollectiveKernel::library) return all_reduce_cost(work, task.gpu, machine);
        const auto fit = device.collective_library->collectives.find(work.kind);
        if (fit == device.collective_library->collectives.end()) {
            std::vector<std::string> known;
            for (const auto& [kind, line] : device.collective_library->collectives)
                known.push_back(name_of(kind));
            throw UserError("device " + device.name + " has no library measurement of " + name_of(work.kind) +
                            suggestion("", known));
        }
        const DeviceLibrary& library = *device.collective_library;
        const double channels = work.cus > 0 ? work.cus : library.channels;
        const int ranks = work.group.members(machine.topology.gpus());
        const double passes = work.kind == CollectiveKind::all_reduce ? 2.0 : 1.0;
        const Bytes to_each_peer = passes / ranks * work.operand;

        const Bytes on_bus = static_cast<double>(ranks - 1) * to_each_peer;
        Cost cost = kernel_cost(*device.launch);
        const auto times = fit->second.times.find(ranks);
        if (times != fit->second.times.end() && channels == library.channels) {
            cost.launch.time = times->second.front().second;
            cost.body = time_between(times->second, work.operand) - cost.launch.time;
        } else {
            const DeviceLibrary::Line line = fastest(fit->second, channels, on_bus, work.kind, device).second;
            cost.launch.time = line.latency;
            cost.body = on_bus / (machine.topology.share_of_links(task.gpu, work.group) * line.bus);
        }
        const double slower = 1 + library.clock_share * (1 / clock_of(machine) - 1);
        cost.body = slower * std::max(cost.body, Seconds());
        if (library.pattern == CollectivePattern::ring)
            go_round(work, task.gpu, machine, on_bus, cost);
        else
            go_straight(task.gpu, work.group, machine,
                        fit->second.sums == Summing::switches ? work.operand / (ranks - 1) : to_each_peer,
                        cost);
        cost.holds.push_back({machine.resources.compute_units(task.gpu), channels});
        return cost;
    }

    /// The line of `channels` channels with the shortest time for `on_bus`, with its key: those of small
    /// operands are measured with all channels only.
    static std::pair<std::string, DeviceLibrary::Line> fastest(const DeviceLibrary::Fit& fit, double channels,
                                                               Bytes on_bus, CollectiveKind kind,
                                                               const DeviceSpec& device) {
        std::pair<std::string, DeviceLibrary::Line> best{
            "", {fit.latency, bus_rate(fit, channels, kind, device), {}}};
        const auto time = [&](const DeviceLibrary::Line& line) { return line.latency + on_bus / line.bus; };
        const auto try_one = [&](const char* key, const std::optional<DeviceLibrary::Line>& protocol) {
            if (protocol && channels == device.collective_library->channels &&
                time(*protocol) < time(best.second))
                best = {key, *protocol};
        };
        try_one("/small", fit.small);
        try_one("/smallest", fit.smallest);
        return best;
    }

private:
    /// Time of a kernel that was measured at several sizes (DeviceLibrary::AllReduce): the time of the smallest one is
    /// latency.
    static Cost all_reduce_cost(const CollectiveKernelWork& work, int gpu, const Machine& machine) {
        const DeviceSpec& device = machine.topology.device();
        const int ranks = work.group.members(machine.topology.gpus());
        const auto& kernels = device.collective_library->all_reduces;
        const auto kernel = kernels.find(work.kernel);
        if (kernel == kernels.end() || !kernel->second.times.contains(ranks))
            throw UserError("device " + device.name + " has no measurement of all_reduce by " +
                            name_of(work.kernel) + " on " + std::to_string(ranks) +
                            " GPUs (see collective_library/all_reduce_kernels in sim explain " + device.name +
                            ")");
        const auto& times = kernel->second.times.at(ranks);
        Cost cost = kernel_cost(*device.launch);
        cost.launch.time = times.front().second;
        cost.body = std::max(time_between(times, work.operand) - cost.launch.time, Seconds());
        const bool reads_all = work.kernel == CollectiveKernel::one_shot;
        go_straight(gpu, work.group, machine, (reads_all ? 1.0 : 2.0 / ranks) * work.operand, cost);
        cost.holds.push_back({machine.resources.compute_units(gpu), kernel->second.channels});
        return cost;
    }

    /// By DeepEP (estimate_exchange). On links a token goes once to each of its nodes, and in each node to its GPUs.
    static Cost exchange_cost(const CollectiveKernelWork& work, int gpu, const Machine& machine) {
        const ExpertExchange& exchange = work.exchange;
        const Topology& topology = machine.topology;
        const int per_node = island_size(topology), node = gpu / per_node;
        const std::vector<int> peers = peers_of(gpu, work.group, machine);
        std::set<int> nodes{node};
        for (const int peer : peers) nodes.insert(peer / per_node);
        const ExchangeGroup group{static_cast<int>(peers.size()) + 1, static_cast<int>(nodes.size())};
        Cost cost = kernel_cost(*topology.device().launch);
        cost.body = estimate_exchange(exchange, group, exchange_parameters(exchange, machine));
        const Bytes sent = static_cast<double>(exchange.tokens) * exchange.token_bytes();
        const double in_node = static_cast<double>(group.gpus) / group.nodes;
        for (const int peer : peers) {
            const double copies = peer / per_node == node ? exchange.copies_to(group.gpus)
                                                          : exchange.copies_to(group.nodes) / group.nodes;
            go_to(gpu, peer, machine, copies / in_node * sent, cost);
        }
        // A low-latency kernel has a block for each so many experts that all blocks run at once
        // (github.com/deepseek-ai/DeepEP, csrc/kernels/internode_ll.cu).
        const double units = topology.device().compute_units,
                     blocks = std::ceil(exchange.experts / std::ceil(exchange.experts / units));
        cost.holds.push_back(
            {machine.resources.compute_units(gpu), exchange.is_low_latency() ? blocks : exchange.sms});
        return cost;
    }

    static Seconds time_between(const std::vector<std::pair<Bytes, Seconds>>& times, Bytes bytes) {
        auto above = std::lower_bound(times.begin(), times.end(), bytes,
                                      [](const auto& one, Bytes size) { return one.first < size; });
        if (above == times.begin() || times.size() == 1) return times.front().second;
        if (above == times.end()) --above;
        const auto& [low, shorter] = *std::prev(above);
        const auto& [high, longer] = *above;
        return shorter + (bytes - low) / (high - low) * (longer - shorter);
    }

    static std::vector<int> peers_of(int gpu, const RankGroup& group, const Machine& machine) {
        std::vector<int> peers;
        for (int i = 0; i < group.members(machine.topology.gpus()); ++i)
            if (const int peer = group.member(group.first(gpu), i); peer != gpu) peers.push_back(peer);
        return peers;
    }

    static void go_straight(int gpu, const RankGroup& group, const Machine& machine, Bytes to_each_peer,
                            Cost& cost) {
        for (const int peer : peers_of(gpu, group, machine)) go_to(gpu, peer, machine, to_each_peer, cost);
    }

    static void go_to(int gpu, int peer, const Machine& machine, Bytes bytes, Cost& cost) {
        for (const std::size_t link : machine.topology.route(gpu, peer).links)
            cost.demands.push_back({machine.resources.link(link), bytes.si()});
        cost.demands.push_back({machine.resources.hbm(peer), bytes.si()});
        cost.demands.push_back({machine.resources.hbm(gpu), bytes.si()});
    }

    // Each rank sends and receives P−1 of the P pieces of an operand: each is read once and written once. A
    // reduction also reads the rank's own part of every piece (the partial sums it sends on, and its own last
    // one) and writes the last sum: 3P−1 accesses in all, 2P−1 of them reads.
    static void go_round(const CollectiveKernelWork& work, int gpu, const Machine& machine, Bytes on_bus,
                         Cost& cost) {
        std::vector<int> ring = machine.topology.ring();
        std::erase_if(ring, [&](int rank) { return !work.group.joins(rank, gpu); });
        const auto at = std::find(ring.begin(), ring.end(), gpu);
        const int next = at + 1 == ring.end() ? ring.front() : *(at + 1);
        const Route route = machine.topology.route(gpu, next);
        const Bytes piece = work.operand / static_cast<double>(ring.size());
        const bool sums =
            work.kind == CollectiveKind::reduce_scatter || work.kind == CollectiveKind::all_reduce;
        const Bytes last_sum = sums ? 3.0 * piece : Bytes();
        cost.setup = (on_bus / piece) * route.latency + last_sum / machine.topology.device().hbm;
        for (const std::size_t link : route.links)
            cost.demands.push_back({machine.resources.link(link), on_bus.si()});
        const Bytes summed = sums ? work.operand + piece : Bytes();
        cost.demands.push_back({machine.resources.hbm(gpu), (2.0 * on_bus + summed).si()});
    }

    // Between measured numbers of channels the rate follows a power law; below the smallest number
    // it is proportional to it.
    static BytesPerSecond bus_rate(const DeviceLibrary::Fit& fit, double channels, CollectiveKind kind,
                                   const DeviceSpec& device) {
        const double all = device.collective_library->channels;
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

const ExchangeParameters& exchange_parameters(const ExpertExchange& exchange, const Machine& machine) {
    const auto* fit = find_fit(machine.calibration.kernels.exchange, exchange_kernel(exchange));
    if (fit == nullptr)
        throw UserError("device " + machine.topology.device().name +
                        " has no measurement of DeepEP's kernels");
    return *fit;
}

std::string key_of_collective(const CollectiveKernelWork& work, int gpu, const Machine& machine) {
    const DeviceSpec& device = machine.topology.device();
    const DeviceLibrary& library = *device.collective_library;
    const int ranks = work.group.members(machine.topology.gpus());
    const std::string of_ranks = "/by_ranks/" + std::to_string(ranks);
    if (work.kernel != CollectiveKernel::library)
        return "/all_reduce_kernels/" + name_of(work.kernel) + of_ranks;
    const std::string key = "/" + name_of(work.kind);
    if (work.cus > 0 && work.cus != library.channels) return key + "/bus_GBps_by_channels";
    const auto fit = library.collectives.find(work.kind);
    if (fit == library.collectives.end() || fit->second.times.contains(ranks)) return key + of_ranks;
    if (machine.topology.share_of_links(gpu, work.group) != 1) return key + "/of a part of the GPUs";
    const double passes = work.kind == CollectiveKind::all_reduce ? 2 : 1;
    const Bytes on_bus = passes * (ranks - 1) / ranks * work.operand;
    return key + LibraryKernel::fastest(fit->second, library.channels, on_bus, work.kind, device).first;
}

std::unique_ptr<CostModel> make_library_kernel() {
    return std::make_unique<LibraryKernel>();
}

}  // namespace overlap
