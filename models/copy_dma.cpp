#include <algorithm>
#include <limits>

#include "models/cost_model.hpp"
#include "sim/topology/device_dma.hpp"

namespace overlap {
namespace {

// A copy by a DMA engine, in phases: command and schedule (the queue is told), start (the engine fetches the
// command, the first bytes cross the route, and up to `ramp` bytes move at half the rate), bytes at the rate
// of the engine or of the narrowest link, completion signal. These phases reproduce the phase table of
// AMD-DMA-Latte PERFORMANCE.md within 3 points (tests/validation).
// - H200: an engine takes longer after it served another stream. The driver polls for the ends of pulls:
//   first 11 us after the stream starts waiting, then every 9.2 us, but at once while a kernel runs
//   (traces/h200_4/microbench: 1 MiB takes 20.5 us alone, 13.2 us beside GEMMs). An awaited
//   end is an event: the stream continues after the event has been seen. A GPU polls for eight events at a time
//   (at_once.jsonl: four 16 MiB pulls with events end at 57, 115, 172, 229 us). Where a host records untimed events
//   (cudaEventDisableTiming), a stream waits only for ends that another GPU awaits (traces/h100_2/notes.md, Pulls behind marks).
// - MI300X: the host thread of a GPU issues copies one at a time and sees their ends one after another.
// - Back to back: all commands and one schedule come before the first copy, the starts of the others are
//   hidden behind the copies before, and there is one completion.
// - Prelaunched: command and schedule are done before; only the release is left.
// - Broadcast and swap: one engine moves the bytes of both routes.
//
// Accuracy on 8 MI300X: speed-ups over plain copies within 15 % up to 16 KiB and from 32 MiB. In between, the
// published copies are up to a third slower than predicted, while the predictions are within 10 % of another
// library (configs/experiments/dma_latte). Ignored: engines that share a port to the fabric.
class DmaCopy final : public CostModel {
public:
    bool handles(const Task& task) const override {
        const auto* copy = std::get_if<CopyWork>(&task.work);
        return copy != nullptr && copy->agent == Agent::dma && !copy->stored;
    }

    Cost cost(const Task& task, const Machine& machine) const override {
        const auto& copy = std::get<CopyWork>(task.work);
        const DeviceDma& dma = *machine.topology.device().dma;
        const ResourceTable& resources = machine.resources;
        const Route route = machine.topology.route(copy.src, copy.dst);

        Cost cost;
        // For data that the memory adds, the engine does not wait for the last writes: it continues
        // while they are under way.
        if (!copy.added) cost.setup = route.latency;
        // Between nodes the NIC's own engine moves the data; the route's
        // latency is that of a whole RDMA write.
        if (!route.through_nic) {
            tell(copy, machine, cost);
            occupy_engine(task, copy, dma, resources, cost);
        }
        BytesPerSecond rate = std::min(dma.engine, use_links(copy, route, machine, cost));
        if (const Broadcast* both = copy.broadcast(); both != nullptr || copy.is_swap()) {
            const Route other = both != nullptr ? machine.topology.route(copy.src, both->second)
                                                : machine.topology.route(copy.dst, copy.src);
            cost.setup = std::max(cost.setup, other.latency);
            rate = std::min(rate, use_links(copy, other, machine, cost));
        }
        if (batch_of(copy).place > 0)
            cost.setup = dma.commands->next_start;
        else if (!route.through_nic)
            cost.setup += (copy.direction == Direction::pull ? dma.phases.pull_start : dma.phases.start) +
                          std::min(copy.bytes, dma.phases.ramp) / rate;
        auto* completion = std::get_if<Completion>(&cost.end);
        if (copy.added && completion != nullptr) completion->latency += route.latency;
        use_memory(copy, resources, cost);
        return cost;
    }

private:
    /// A copy that is no part of a batch is a batch of one.
    static BackToBack batch_of(const CopyWork& copy) {
        const auto* part = std::get_if<BackToBack>(&copy.command);
        return part != nullptr ? *part : BackToBack{0, 1};
    }

    /// Whether the sender's engine executes a pull that the receiver issues.
    static bool by_sender(const CopyWork& copy, const DeviceDma& dma) {
        return copy.direction == Direction::pull && dma.pulls == PullServer::sender;
    }

    /// Adds the demands on the route's links and returns the narrowest link's
    /// rate. Two routes may share links.
    static BytesPerSecond use_links(const CopyWork& copy, const Route& route, const Machine& machine,
                                    Cost& cost) {
        BytesPerSecond narrowest(std::numeric_limits<double>::max());
        for (const std::size_t link : route.links) {
            narrowest = std::min(narrowest, machine.topology.links()[link].bandwidth);
            const ResourceId resource = machine.resources.link(link);
            const auto used = std::find_if(cost.demands.begin(), cost.demands.end(),
                                           [&](const Demand& d) { return d.resource == resource; });
            if (used != cost.demands.end())
                used->amount += copy.bytes.si();
            else
                cost.demands.push_back({resource, copy.bytes.si()});
        }
        return narrowest;
    }

    static void tell(const CopyWork& copy, const Machine& machine, Cost& cost) {
        const DeviceDma& dma = *machine.topology.device().dma;
        // The sender's engine gets the command when the receiver's stream reaches the copy, not earlier; the
        // receiver polls for the end.
        const bool sender = by_sender(copy, dma);
        cost.launch.ahead = !sender;
        const auto [place, batch] = batch_of(copy);
        const bool first = place == 0, last = place + 1 == batch;
        if (first && copy.prelaunched) {
            cost.launch.time = dma.commands->release;
        } else if (first) {
            const Seconds others = batch > 1 ? (batch - 1.0) * dma.commands->next_command : Seconds();
            cost.launch.time =
                dma.phases.command + (sender ? dma.phases.pull_schedule : dma.phases.schedule) + others;
            if (dma.phases.queued_launch > Seconds()) cost.launch.queued = dma.phases.queued_launch + others;
        }
        cost.switch_over = dma.switch_over;
        if (!last) return;
        if (sender && dma.poll > Seconds())
            cost.end = Polling{dma.first_poll, dma.poll, dma.event_queues, !machine.untimed_events};
        else
            cost.end = Completion{dma.phases.completion, dma.phases.completions_apart};
        if (copy.direction == Direction::push)
            cost.handoffs.other_stream = cost.handoffs.other_gpu = dma.phases.push_dependency;
    }

    static void occupy_engine(const Task& task, const CopyWork& copy, const DeviceDma& dma,
                              const ResourceTable& resources, Cost& cost) {
        // A strided copy loses, for each run, the time of a fixed number of bytes.
        const double stretch = copy.run < copy.bytes ? (copy.run + dma.phases.strided_run) / copy.run : 1.0;
        double moved = copy.bytes.si() * stretch;
        if (copy.is_swap()) moved *= 2;
        if (copy.broadcast() != nullptr) moved *= 2 * (dma.engine / dma.commands->broadcast);
        const int server = by_sender(copy, dma) || copy.direction == Direction::push ? copy.src : copy.dst;
        const int other = batch_of(copy).batch > 1 ? task.gpu + 1 : server == copy.dst ? copy.src : copy.dst;
        const ResourceId engine = resources.dma_engine(server, other);
        cost.claim = Claim{engine};
        cost.claim->as_enqueued = by_sender(copy, dma);
        cost.demands.push_back({engine, moved});
        cost.body = Bytes(moved) / dma.engine;
    }

    static void use_memory(const CopyWork& copy, const ResourceTable& resources, Cost& cost) {
        const double bytes = copy.bytes.si();
        const double at_an_end = copy.is_swap() ? 2 * bytes : bytes;  // a swap reads and writes both ends
        cost.demands.push_back({resources.hbm(copy.src), at_an_end});
        cost.demands.push_back({resources.hbm(copy.dst), at_an_end});
        if (const Broadcast* both = copy.broadcast())
            cost.demands.push_back({resources.hbm(both->second), bytes});
    }
};

}  // namespace

std::unique_ptr<CostModel> make_dma_copy() {
    return std::make_unique<DmaCopy>();
}

}  // namespace overlap
