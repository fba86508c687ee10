// One pass over a graph whose tasks share nothing finds what the simulation finds, to the bit.
#include "sim/engine/unshared_run.hpp"

#include <catch2/catch.hpp>
#include <random>

#include "sim/engine/flow_engine.hpp"
#include "tests/test_support.hpp"

namespace overlap::test::unshared_run_test {
namespace {

constexpr int streams = 3;

const ResourceTable& machine() {
    static const ResourceTable table = [] {
        DeviceSpec device = round_device();
        device.dma.peer_engines = 2;
        return ResourceTable(topology_of(3, group("full_mesh"), 1, "", device));
    }();
    return table;
}

/// Simulates whatever the graph shares: the engine tells an observer about rates.
class Observer final : public RateObserver {
    void rate(Seconds, TaskId, double) override {}
};

/// Two classes of tasks a stream, with every phase, claim and edge that the pass knows. `shared`: all streams of a
/// GPU draw on one resource, or claim one engine.
struct RandomCase {
    TaskGraph graph;
    Costs costs;

    RandomCase(unsigned seed, bool shared) : random_(seed) {
        for (int gpu = 0; gpu < 3; ++gpu)
            for (int stream = 0; stream < streams; ++stream)
                for (int kind = 0; kind < 2; ++kind) add_class(gpu, shared ? 0 : stream);
        for (TaskId id = 0; id < 40; ++id) {
            const unsigned number = below(9);
            Task task{.work = GemmShape{1, 1, 1}, .gpu = static_cast<int>(number / streams)};
            task.stream = static_cast<int>(number % streams);
            graph.add(task);
            for (unsigned e = id == 0 ? 0 : below(3); e > 0; --e)
                graph.add_edge({below(static_cast<unsigned>(id)), id});
            costs.class_of.push_back(2 * number + below(2));
        }
    }

private:
    unsigned below(unsigned n) { return static_cast<unsigned>(random_() % n); }
    Seconds some_time(unsigned n) { return microseconds(below(3) == 0 ? 0.0 : 1e-6 * n * below(1'000'000)); }

    void add_class(int gpu, int part) {
        Cost& cost = costs.classes.emplace_back();
        cost.launch = {.time = some_time(5), .ahead = below(2) == 0};
        cost.setup = some_time(3);
        cost.switch_over = some_time(3);
        cost.body = some_time(200);
        cost.end = Completion{.latency = some_time(3), .event = some_time(2)};
        cost.awaited = below(4) == 0;
        cost.handoffs = {some_time(3), some_time(5), some_time(2)};
        // Half of a link for each of the first two streams; DMA engines for these.
        const ResourceId link = machine().link(static_cast<std::size_t>(2 * gpu + part / 2));
        if (below(2) == 0) cost.demands.push_back({link, 0.5 * machine()[link].capacity * cost.body.si()});
        if (below(2) == 0 && part < 2) cost.claim = Claim{machine().dma_engine(gpu, gpu + 1 + part)};
        if (below(3) == 0) cost.holds.push_back({machine().compute_units(gpu), 5});
    }

    std::mt19937 random_;
};

}  // namespace

TEST_CASE("a graph that shares nothing has the times of its simulation, to the bit") {
    unsigned passes = 0, simulated = 0;
    for (unsigned seed = 0; seed < 600; ++seed) {
        const RandomCase random(seed, seed % 3 == 0);
        const FairShare shares(random.costs, machine(), random.graph.stream_numbers());
        const std::vector<TaskTimes> pass = times_without_sharing(random.graph, random.costs, machine(), shares);
        ++(pass.empty() ? simulated : passes);
        Observer observer;
        const auto found = run_flow(random.graph, random.costs, machine()).tasks,
                   expected = run_flow(random.graph, random.costs, machine(), 0, &observer).tasks;
        for (TaskId id = 0; id < expected.size(); ++id) {
            INFO("seed " << seed << ", task " << id);
            REQUIRE(found[id].start == expected[id].start);
            REQUIRE(found[id].body == expected[id].body);
            REQUIRE(found[id].done == expected[id].done);
            REQUIRE(found[id].end == expected[id].end);
        }
    }
    CHECK(passes > 300);
    CHECK(simulated > 100);
}

TEST_CASE("what waits for others is left to the simulation") {
    TaskGraph graph;
    for (int stream = 0; stream < 2; ++stream) graph.add({.work = GemmShape{1, 1, 1}, .stream = stream});
    std::vector<Cost> costs(2);
    for (Cost& cost : costs) cost.body = microseconds(10);
    const auto passes = [&] {
        return !times_without_sharing(graph, costs, machine(), FairShare(costs, machine(), graph.stream_numbers()))
                    .empty();
    };
    CHECK(passes());
    SECTION("units") {
        for (Cost& cost : costs) cost.claim = Claim{machine().dma_engine(0, 1)};
    }
    SECTION("a resource") {
        for (Cost& cost : costs) cost.demands.push_back({machine().compute_units(0), 0.9 * 100 * 10e-6});
    }
    SECTION("a launch") {
        costs[1].launch.queued = microseconds(1);
    }
    SECTION("the sight of an end") {
        costs[1].end = Completion{.apart = microseconds(1)};
    }
    SECTION("a poll") {
        costs[1].end = Polling{microseconds(1), microseconds(1)};
    }
    SECTION("tiles") {
        costs[1].claim = Claim{.resource = machine().compute_units(0), .parts = Tiles{1, 1}};
    }
    SECTION("a flag") {
        graph.add_edge({0, 1, 0.5, 0});
    }
    CHECK(!passes());
}

}  // namespace overlap::test::unshared_run_test
