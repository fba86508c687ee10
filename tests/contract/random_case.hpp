// Random task graphs with their prices, on three small GPUs: what both engines are compared on.
#pragma once

#include <optional>
#include <random>
#include <vector>

#include "sim/engine/flow_engine.hpp"
#include "sim/pricing/effects.hpp"
#include "sim/topology/device_dma.hpp"
#include "tests/test_support.hpp"

namespace overlap::test {

/// Three GPUs; the two DMA engines of each have one queue, in any order.
inline const ResourceTable& mesh(unsigned seed) {
    static const std::vector<ResourceTable> tables = [] {
        std::vector<ResourceTable> result;
        for (const QueueOrder order : {QueueOrder::fifo, QueueOrder::round_robin, QueueOrder::unspecified}) {
            DeviceSpec device = round_device();
            device.dma->peer_engines = 2;
            device.dma->queues = DmaQueues::shared;
            device.dma->order = order;
            result.emplace_back(topology_of(3, group("full_mesh"), 1, "", device));
        }
        return result;
    }();
    return tables[seed % tables.size()];
}

/// The first `size` tasks of the graph that a seed stands for: streams and priorities, edges of every kind,
/// phases, claims, holds, weights, shared resources.
class RandomCase {
public:
    RandomCase(unsigned seed, unsigned size) : random_(seed), table_(mesh(seed)), weighted_(seed % 8 == 7) {
        for (unsigned id = 0; id < size; ++id) add(id);
    }

    TaskGraph graph;
    std::vector<Cost> costs;

private:
    unsigned below(unsigned n) { return static_cast<unsigned>(random_() % n); }
    // A third of the latencies is zero; the rest is arbitrary, so that no two instants coincide by chance:
    // which of two equal instants comes first is a matter of rounding on SimGrid's floating clock.
    Seconds microseconds_below(unsigned n) {
        return microseconds(below(3) == 0 ? 0.0 : 1e-6 * n * below(1'000'000));
    }

    void add(unsigned id) {
        Task task;
        task.work = GemmShape{1, 1, 1};
        task.gpu = static_cast<int>(below(3));
        task.stream = static_cast<int>(below(4));
        task.priority = static_cast<int>(below(2));
        Cost cost;
        cost.launch.time = microseconds_below(5);
        cost.launch.ahead = below(2) == 0;
        if (below(6) == 0) cost.launch.queued = microseconds_below(5);
        cost.setup = microseconds_below(3);
        Completion& completion = cost.end.emplace<Completion>();
        completion.latency = microseconds_below(3);
        if (below(6) == 0) completion.apart = microseconds_below(3);
        if (below(6) == 0) completion.event = microseconds_below(3);
        cost.awaited = below(3) == 0;
        cost.handoffs.other_stream = microseconds_below(3);
        cost.handoffs.other_gpu = microseconds_below(5);
        cost.handoffs.flag = microseconds_below(2);
        cost.body = microseconds_below(200);
        add_uses(task.gpu, cost);
        std::vector<Edge> edges;
        bool gated = false;
        for (unsigned e = id == 0 ? 0 : below(3); e > 0; --e) {
            Edge edge{below(id), id};
            if (below(3) == 0) edge.from = 0.001 * (1 + below(1000));
            if (below(4) == 0) edge.to = 0.001 * below(1000);
            gated = gated || edge.to > 0;
            edges.push_back(edge);
        }
        // Who waits at a gate keeps its units, for which the one it waits for might wait.
        if (gated) cost.claim.reset();
        graph.add(task, {});
        for (const Edge& edge : edges) graph.add_edge(edge);
        costs.push_back(std::move(cost));
    }

    void add_uses(int gpu, Cost& cost) {
        // At most two shared resources, so that the reference's solver rarely gives up.
        for (unsigned d = below(3); d > 0; --d) {
            const ResourceId resource = below(static_cast<unsigned>(table_.size()));
            if (std::any_of(cost.demands.begin(), cost.demands.end(),
                            [&](const Demand& other) { return other.resource == resource; }))
                continue;
            const double weight = weighted_ && below(3) == 0 ? 0.5 + 0.01 * below(300) : 1.0;
            cost.demands.push_back(
                {resource, table_[resource].capacity * 1e-6 * (1 + 1e-4 * below(1'000'000)), weight});
        }
        if (below(4) == 0) cost.claim = Claim{table_.dma_engine(gpu, (gpu + 1) % 3)};
        if (below(5) == 0) {
            const int least = 1 + static_cast<int>(below(50));
            cost.claim =
                Claim{table_.compute_units(gpu), least, least + static_cast<int>(below(50)), below(2) == 0};
            if (least % 3 == 0) {
                cost.claim->parts = Tail{0.02 * least - 0.01, (least + 1) / 2};
            } else if (least % 3 == 1) {
                cost.claim->least = 1, cost.claim->yields = false;
                Tiles& tiles = cost.claim->parts.emplace<Tiles>();
                tiles.waves = 1 + static_cast<int>(below(5));
                tiles.count = cost.claim->most * tiles.waves - static_cast<int>(below(least));
                tiles.cache_left = Bytes(below(4));
            } else if (below(2) == 0) {
                cost.claim->least = 1, cost.claim->yields = false;
                cost.claim->parts = Blocks{.count = cost.claim->most,
                                           .together = 1 + static_cast<int>(below(3)),
                                           .unit = cost.body * least,
                                           .beside_tiles = 0.5 + 0.01 * below(50),
                                           .in_flight = Bytes(below(4)),
                                           .to_the_end = below(3) == 0,
                                           .paired = static_cast<int>(below(cost.claim->most + 1)),
                                           .streaming = below(3) == 0,
                                           .beside_streaming = 0.5 + 0.01 * below(50)};
            }
        }
        if (below(6) == 0) cost.holds.push_back({table_.compute_units(gpu), 1.0 + below(20)});
        if (below(6) == 0) cost.holds.push_back({table_.clock(gpu), 0.05 * (1 + below(5)), false});
    }

    std::mt19937 random_;
    const ResourceTable& table_;
    bool weighted_;  ///< some graphs only: with weights the reference's solver gives up on every second one
};

}  // namespace overlap::test
