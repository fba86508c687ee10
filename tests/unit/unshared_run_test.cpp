// One pass over a graph whose tasks share nothing finds what the simulation finds, to the bit.
#include "sim/engine/unshared_run.hpp"

#include <catch2/catch.hpp>
#include <random>

#include "sim/engine/flow_engine.hpp"
#include "sim/topology/device_dma.hpp"
#include "tests/test_support.hpp"

namespace overlap::test::unshared_run_test {
namespace {

constexpr int streams = 3;

const ResourceTable& machine() {
    static const ResourceTable table = [] {
        DeviceSpec device = round_device();
        device.dma->peer_engines = 2;
        return ResourceTable(topology_of(3, group("full_mesh"), 1, "", device));
    }();
    return table;
}

/// Simulates whatever the graph shares: the engine tells an observer about rates.
class Observer final : public RateObserver {
    void rate(Seconds, TaskId, double) override {}
};

/// Two classes of tasks a stream, with every phase, claim and edge that the pass knows. `shared`: all streams of a
/// GPU draw on one resource, or claim one engine. `queued`: launches, and the sights of ends, come one after another.
/// `even`: times are few whole numbers, so that much happens at one instant.
struct RandomCase {
    TaskGraph graph;
    Costs costs;

    RandomCase(unsigned seed, bool shared, bool queued, bool even)
        : random_(seed), queued_(queued), even_(even), lasts_(microseconds(seed % 2)) {
        for (int gpu = 0; gpu < 3; ++gpu)
            for (int stream = 0; stream < streams; ++stream)
                for (int kind = 0; kind < 2; ++kind) add_class(gpu, shared ? 0 : stream);
        for (TaskId id = 0; id < (queued ? 12 : 40); ++id) {
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
    Seconds some_time(unsigned n) {
        if (below(3) == 0) return Seconds();
        return microseconds(even_ ? below(std::min(n, 4U)) : 1e-6 * n * below(1'000'000));
    }

    void add_class(int gpu, int part) {
        Cost& cost = costs.classes.emplace_back();
        cost.launch = {
            .time = some_time(5), .queued = queued_ ? some_time(4) : Seconds(), .ahead = below(2) == 0};
        cost.setup = some_time(3);
        cost.switch_over = some_time(3);
        cost.body = some_time(200) + lasts_;
        cost.end = Completion{
            .latency = some_time(3), .apart = queued_ ? some_time(2) : Seconds(), .event = some_time(2)};
        cost.awaited = below(4) == 0;
        cost.handoffs = {some_time(3), some_time(5), some_time(2)};
        // Half of a link for each of the first two streams; DMA engines for these.
        const ResourceId link = machine().link(static_cast<std::size_t>(2 * gpu + part / 2));
        if (below(2) == 0) cost.demands.push_back({link, 0.5 * machine()[link].capacity * cost.body.si()});
        if (below(2) == 0 && part < 2) cost.claim = Claim{machine().dma_engine(gpu, gpu + 1 + part)};
        if (below(3) == 0) cost.holds.push_back({machine().compute_units(gpu), 5});
    }

    std::mt19937 random_;
    bool queued_, even_;
    Seconds lasts_;  ///< by every body
};

void require_as_simulated(const TaskGraph& graph, CostView costs) {
    Observer observer;
    const auto found = run_flow(graph, costs, machine()).tasks,
               expected = run_flow(graph, costs, machine(), 0, &observer).tasks;
    for (TaskId id = 0; id < expected.size(); ++id) {
        INFO("task " << id);
        REQUIRE(found[id].start == expected[id].start);
        REQUIRE(found[id].body == expected[id].body);
        REQUIRE(found[id].done == expected[id].done);
        REQUIRE(found[id].end == expected[id].end);
    }
}

}  // namespace

TEST_CASE("a graph that shares nothing has the times of its simulation, to the bit") {
    const bool queued = GENERATE(false, true);
    const bool even = GENERATE(false, true);
    unsigned passes = 0, simulated = 0;
    for (unsigned seed = 0; seed < (queued ? 3000 : 600); ++seed) {
        const RandomCase random(seed, seed % 3 == 0, queued, even);
        const FairShare shares(random.costs, machine(), random.graph.stream_numbers());
        const std::vector<TaskTimes> pass =
            times_without_sharing(random.graph, random.costs, machine(), shares);
        ++(pass.empty() ? simulated : passes);
        INFO("seed " << seed);
        require_as_simulated(random.graph, random.costs);
    }
    CAPTURE(queued, even, passes, simulated);
    CHECK(passes > (queued ? 80 : 300));
    CHECK(simulated > 100);
}

TEST_CASE("what waits for others is left to the simulation") {
    TaskGraph graph;
    for (int stream = 0; stream < 2; ++stream) graph.add({.work = GemmShape{1, 1, 1}, .stream = stream});
    std::vector<Cost> costs(2);
    for (Cost& cost : costs) cost.body = microseconds(10);
    const auto passes = [&] {
        return !times_without_sharing(graph, costs, machine(),
                                      FairShare(costs, machine(), graph.stream_numbers()))
                    .empty();
    };
    CHECK(passes());
    SECTION("units") {
        for (Cost& cost : costs) cost.claim = Claim{machine().dma_engine(0, 1)};
    }
    SECTION("a resource") {
        for (Cost& cost : costs) cost.demands.push_back({machine().compute_units(0), 0.9 * 100 * 10e-6});
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

TEST_CASE("a launch asked for when others of its instant have begun goes after them") {
    TaskGraph graph;
    for (const int stream : {0, 1, 2, 3, 2}) graph.add({.work = GemmShape{1, 1, 1}, .stream = stream});
    graph.add_edge({0, 1});
    graph.add_edge({1, 3});
    std::vector<Cost> costs(5);
    costs[0].body = costs[2].body = microseconds(10);
    for (const TaskId id : {3U, 4U}) costs[id].launch = {.time = microseconds(5), .queued = microseconds(2)};
    SECTION("by a task without duration, given its engine behind them") {
        costs[1].claim = Claim{machine().dma_engine(0, 1)};
    }
    SECTION("by a task without duration, launched with them") {
        costs[1].launch.queued = microseconds(1);
    }
    const auto times = run_flow(graph, costs, machine()).tasks;
    CHECK(times[4].start.si() == Approx(10e-6));
    CHECK(times[3].start.si() == Approx(15e-6));
    require_as_simulated(graph, costs);
}

}  // namespace overlap::test::unshared_run_test
