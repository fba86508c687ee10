#include <algorithm>

#include "models/cost_model.hpp"

namespace overlap {
namespace {

// A copy by a DMA engine: command and schedule (the queue is told), start (the engine fetches the command and
// the first bytes cross the route, up to `ramp` at half the rate), bytes at the rate of the engine or of the
// narrowest link, completion signal. Evidence: the phase table of AMD-DMA-Latte PERFORMANCE.md, reproduced
// within 3 points (tests/validation). H200: its engine takes longer to turn to another stream, and ends of
// pulls are polled for: they are seen 11 us after the stream began to wait, and every 9.2 us from then, but
// at once while a kernel runs beside (traces/h200_4/microbench: 1 MiB takes 20.5 us alone, 13.2 us beside
// GEMMs). Ignored: batching of commands, and engines that share a port to the fabric.
class DmaCopy final : public CostModel {
public:
    bool handles(const Task& task) const override {
        const auto* copy = std::get_if<CopyWork>(&task.work);
        return copy != nullptr && copy->agent == Agent::dma;
    }

    Cost cost(const Task& task, const Machine& machine) const override {
        const auto& copy = std::get<CopyWork>(task.work);
        const DeviceSpec::Dma& dma = machine.topology.device().dma;
        const ResourceTable& resources = machine.resources;
        const Route route = machine.topology.route(copy.src, copy.dst);

        Cost cost;
        cost.setup = route.latency;
        // A strided copy pays a fixed number of bytes' worth of time for each run.
        const double stretch = copy.run < copy.bytes ? (copy.run + dma.strided_run) / copy.run : 1.0;
        const double moved = copy.bytes.si() * stretch;
        BytesPerSecond rate = dma.engine;
        // Between nodes the NIC's own engine moves the data, and the route's latency is that of a whole RDMA
        // write.
        if (!route.through_nic) {
            const bool pull = copy.direction == Direction::pull;
            const bool by_sender = pull && dma.pulls == PullServer::sender;
            // The sender's engine is told when the receiver's stream has come to the copy, not before, and
            // the receiver sees the end when it looks.
            cost.launch = dma.command + (by_sender ? dma.pull_schedule : dma.schedule);
            cost.launch_ahead = !by_sender;
            cost.setup += pull ? dma.pull_start : dma.start;
            cost.switch_over = dma.switch_over;
            if (by_sender && dma.poll > Seconds())
                cost.polling = Polling{dma.first_poll, dma.poll, dma.poll_apart};
            else
                cost.completion = dma.completion;
            const int server = pull && !by_sender ? copy.dst : copy.src;
            const ResourceId engine = resources.dma_engine(server, server == copy.dst ? copy.src : copy.dst);
            cost.claim = Claim{engine};
            cost.claim->as_enqueued = by_sender;
            cost.demands.push_back({engine, moved});
            cost.body = Bytes(moved) / dma.engine;
        }
        for (const std::size_t link : route.links) {
            cost.demands.push_back({resources.link(link), copy.bytes.si()});
            rate = std::min(rate, machine.topology.links()[link].bandwidth);
        }
        if (!route.through_nic) cost.setup += std::min(copy.bytes, dma.ramp) / rate;
        cost.demands.push_back({resources.hbm(copy.src), copy.bytes.si()});
        cost.demands.push_back({resources.hbm(copy.dst), copy.bytes.si()});
        return cost;
    }
};

}  // namespace

std::unique_ptr<CostModel> make_dma_copy() {
    return std::make_unique<DmaCopy>();
}

}  // namespace overlap
