// Closed forms of what decides when tasks may go on: claims, priorities, orders of queues, progress edges.
// Every registered engine must reproduce them.
#include <catch2/catch.hpp>
#include <set>

#include "sim/engine/engine.hpp"
#include "sim/topology/device_dma.hpp"
#include "tests/any_engine.hpp"
#include "tests/test_support.hpp"

namespace overlap::test::order_test {
namespace {

/// Three GPUs of 100 compute units, whose DMA engines are `engines` with one queue in this order.
ResourceTable machine(QueueOrder order = QueueOrder::fifo, int engines = 1) {
    DeviceSpec device = round_device();
    device.dma->peer_engines = engines;
    device.dma->queues = DmaQueues::shared;
    device.dma->order = order;
    return ResourceTable(topology_of(3, group("full_mesh"), 1, "", device));
}

Cost lasts(double seconds) {
    Cost cost;
    cost.body = Seconds(seconds);
    return cost;
}

struct Case {
    ResourceTable table = machine();
    TaskGraph graph;
    std::vector<Cost> costs;
    int streams = 0;

    TaskId add(const Cost& cost, std::initializer_list<TaskId> after = {}, int gpu = 0, int stream = -1,
               int priority = 0) {
        costs.push_back(cost);
        Task task{GemmShape{1, 1, 1}, gpu, stream >= 0 ? stream : 100 + streams++};
        task.priority = priority;
        return graph.add(task, after);
    }
    Cost copy(double seconds) const {
        Cost cost = lasts(seconds);
        cost.claim = Claim{table.dma_engine(0, 1)};
        return cost;
    }
    /// A GEMM on all units of GPU 0 that keeps its units, or leaves them to higher priorities.
    Cost gemm(double seconds, bool yields = false) const {
        Cost cost = lasts(seconds);
        cost.demands = {{table.compute_units(0), 100 * seconds}};
        cost.claim = Claim{table.compute_units(0), 1, 100, yields};
        return cost;
    }
    /// A kernel that needs, and holds, `units` units of GPU 0.
    Cost kernel(int units, double seconds) const {
        Cost cost = lasts(seconds);
        cost.holds = {{table.compute_units(0), static_cast<double>(units)}};
        cost.claim = Claim{table.compute_units(0), units, units};
        return cost;
    }
    std::vector<double> ends(const std::string& engine, std::uint64_t seed = 0) const {
        std::vector<double> result;
        for (const TaskTimes& times : make_engine(engine)->run(graph, costs, table, seed).tasks)
            result.push_back(times.end.si());
        return result;
    }
};

}  // namespace

TEST_CASE("weighted shares: three to one until the first is done") {
    Case two;
    // 10 GB/s: 7.5 and 2.5 GB/s. The first has its 3 GB at 0.4 s; the other has 1 of 3 GB then and the rest
    // at 10 GB/s: 0.4 + 0.2.
    for (const double weight : {3.0, 1.0}) {
        Cost cost;
        cost.demands = {{two.table.link(0), 3e9, weight}};
        two.add(cost);
    }
    const auto ends = two.ends(any_engine());
    CHECK(ends[0] == Approx(0.4));
    CHECK(ends[1] == Approx(0.6));
}

TEST_CASE("weights that are no whole numbers, against more than one other") {
    Case three;
    // 10 GB/s by 1.5 : 0.5 : 0.5: 6, 2, 2 GB/s; all end together with 6, 2, 2 GB.
    const std::vector<std::pair<double, double>> flows{{6e9, 1.5}, {2e9, 0.5}, {2e9, 0.5}};
    for (const auto& [bytes, weight] : flows) {
        Cost cost;
        cost.demands = {{three.table.link(0), bytes, weight}};
        three.add(cost);
    }
    for (const double end : three.ends(any_engine())) CHECK(end == Approx(1));
}

TEST_CASE("the top rate of a GEMM depends on who else is running") {
    Case some;
    Cost gemm = lasts(1);
    gemm.demands = {{some.table.clock(0), 1}};
    Cost copy = lasts(0.25);
    copy.holds = {{some.table.clock(0), 0.2, false}};
    some.add(gemm);
    some.add(copy);
    some.add(copy);  // two at once slow no more than one
    // 0.25 s at 80 %: 0.2 done; 0.8 s more.
    const std::string engine = any_engine();
    CHECK(some.ends(engine)[0] == Approx(1.05));
    // A second GEMM on the same GPU meets the same limit by itself.
    some.add(gemm);
    CHECK(some.ends(engine)[0] == Approx(1.05));
    CHECK(some.ends(engine)[3] == Approx(1.05));
}

TEST_CASE("a claim that gets smaller leaves units to whoever waits") {
    // 40 of 100 units are busy all the time; from 3 s on no more than 30 are kept.
    const auto ends_beside = [](int units) {
        Case two;
        Cost gemm = two.gemm(4);
        gemm.demands[0].amount = 40 * 4;
        gemm.claim->parts = Tail{0.75, 30};
        two.add(gemm);
        two.add(two.kernel(units, 1));
        return two.ends(any_engine());
    };
    CHECK(ends_beside(60) == std::vector<double>{4, 4});
    CHECK(ends_beside(80) == std::vector<double>{4, 5});  // 70 are not enough
}

TEST_CASE("k servers take k copies at once") {
    Case five;
    five.table = machine(QueueOrder::fifo, 2);
    for (int i = 0; i < 5; ++i) five.add(five.copy(1));
    CHECK(five.ends(any_engine()) == std::vector<double>{1, 1, 2, 2, 3});
}

TEST_CASE("round robin goes from stream to stream, whoever asked first") {
    Case some;
    some.table = machine(QueueOrder::round_robin);
    const auto add = [&](int stream, double launch) {
        Cost cost = some.copy(1);
        cost.launch.time = Seconds(launch);
        cost.launch.ahead = true;
        return some.add(cost, {}, 0, stream);
    };
    // Streams 0, 1, 2 by their first tasks. Stream 2 asks first and is served at 0.1. At 1.1 the streams 2
    // (again), 0 and 1 wait: after 2 comes 0 (till 2.1), then 1 (3.1), then 2 (4.1).
    const TaskId zero = add(0, 0.3), one = add(1, 0.2), two = add(2, 0.1), again = add(2, 0);
    const auto ends = some.ends(any_engine());
    CHECK(ends[two] == Approx(1.1));
    CHECK(ends[zero] == Approx(2.1));
    CHECK(ends[one] == Approx(3.1));
    CHECK(ends[again] == Approx(4.1));
}

TEST_CASE("an unspecified order is drawn from the seed, each order about as often as any other") {
    Case three;
    three.table = machine(QueueOrder::unspecified);
    for (int i = 1; i <= 3; ++i) three.add(three.copy(1));
    std::map<std::vector<double>, int> seen;
    for (std::uint64_t seed = 0; seed < 600; ++seed) ++seen[three.ends("flow", seed)];
    CHECK(seen.size() == 6);
    // 100 of 600 expected, standard deviation 9.1; four of them either way.
    for (const auto& [order, times] : seen) {
        CHECK(times > 63);
        CHECK(times < 137);
    }
    for (const std::uint64_t seed : {1, 2, 3}) CHECK(three.ends("simgrid", seed) == three.ends("flow", seed));
}

TEST_CASE("runs of several seeds, on all cores, are those of each seed in their order") {
    Case three;
    three.table = machine(QueueOrder::unspecified);
    for (int i = 1; i <= 3; ++i) three.add(three.copy(i));
    constexpr int many = 1 + static_cast<int>(worth_all_cores) / 3;
    for (const auto& [name, seeds] : {std::pair(any_engine(), 4), std::pair(std::string("flow"), many)}) {
        std::vector<std::vector<double>> together;
        const auto keep = [&](const EngineResult& result) {
            std::vector<double>& ends = together.emplace_back();
            for (const TaskTimes& times : result.tasks) ends.push_back(times.end.si());
        };
        make_engine(name)->run_seeds(three.graph, three.costs, three.table, seeds, keep);
        std::uint64_t seed = 0;
        for (const std::vector<double>& ends : together) CHECK(ends == three.ends(name, seed++));
        CHECK(seed == static_cast<std::uint64_t>(seeds));
        CHECK(std::set(together.begin(), together.end()).size() > 1);
    }
}

TEST_CASE("seeds that fail say why, and give no result") {
    Case two;
    two.table = machine(QueueOrder::unspecified);
    // One after the other they last beyond the end of simulated time, 9,223 s, whichever is first.
    two.add(two.copy(6000));
    two.add(two.copy(7000));
    const auto engine = make_engine("flow");
    const auto says = Catch::Contains("of gpu 0 goes on beyond");
    CHECK_THROWS_WITH(engine->run(two.graph, two.costs, two.table, 0), says);
    const auto never_called = [](const EngineResult&) { FAIL("no seed has a result"); };
    CHECK_THROWS_WITH(engine->run_seeds(two.graph, two.costs, two.table, worth_all_cores, never_called),
                      says);
}

TEST_CASE("claims served as enqueued wait for their turn, ready or not") {
    Case three;
    three.table = machine(QueueOrder::unspecified);
    Cost copy = three.copy(1);
    copy.claim->as_enqueued = true;
    for (const double launch : {2.0, 0.5, 0.0}) {
        copy.launch.time = Seconds(launch);
        three.add(copy);
    }
    // The engine is free, but the first of them comes at 2 s.
    CHECK(three.ends(any_engine(), 5) == std::vector<double>{3, 4, 5});
}

TEST_CASE("all GPUs pushing to all at once, one server each, take 1 to 7/3 of the ideal, median 5/3") {
    // 4 GPUs, 3 copies of 10 GB each at 10 GB/s; two that read from the same GPU share its egress. Measured
    // on a 4x H200 node: 1, 4/3, 5/3, 7/4 … 11/6, 2.
    DeviceSpec device = round_device();
    device.dma->order = QueueOrder::unspecified;
    const Machine node = machine_of(topology_of(4, group("switch", R"(, "name": "switch")"), 1, "", device));
    TaskGraph graph;
    std::vector<Cost> costs;
    for (int gpu = 0; gpu < 4; ++gpu)
        for (int peer = 0; peer < 4; ++peer) {
            if (peer == gpu) continue;
            graph.add(Task{GemmShape{1, 1, 1}, gpu, transfer_stream(peer)}, {});
            Cost cost;
            cost.claim = Claim{node.resources.dma_engine(gpu, peer)};
            for (const std::size_t link : node.topology.route(gpu, peer).links)
                cost.demands.push_back({node.resources.link(link), 10e9});
            costs.push_back(cost);
        }
    std::vector<double> makespans;
    for (std::uint64_t seed = 0; seed < 1001; ++seed)
        makespans.push_back(make_engine("flow")->run(graph, costs, node.resources, seed).makespan.si() / 3);
    std::sort(makespans.begin(), makespans.end());
    CHECK(makespans.front() >= 1 - 1e-9);
    CHECK(makespans.back() <= 7.0 / 3 + 1e-9);
    CHECK(makespans[500] == Approx(5.0 / 3));
}

TEST_CASE("a kernel starves beside a GEMM that keeps its units") {
    Case two;
    two.add(two.gemm(10));
    Cost late = two.kernel(20, 1);
    late.launch.time = Seconds(1);
    two.add(late);
    // It waits for the GEMM's end.
    CHECK(two.ends(any_engine()) == std::vector<double>{10, 11});
}

TEST_CASE("a kernel that comes first has its units until its end, and the GEMM the others") {
    Case three;
    three.add(three.kernel(20, 1), {}, 0, 1);
    Cost gemm = three.gemm(10);
    gemm.launch.time = Seconds(0.5);
    three.add(gemm);
    three.add(three.kernel(20, 1), {}, 0, 1);  // after the first on its stream
    // The GEMM: 0.5 s at 80 %, 0.4 done; then it has taken the units of the first kernel before the second
    // asks: 9.6 s more, to 10.6. The second waits for that: 11.6.
    const auto ends = three.ends(any_engine());
    CHECK(ends[0] == Approx(1));
    CHECK(ends[1] == Approx(10.6));
    CHECK(ends[2] == Approx(11.6));
}

TEST_CASE("a higher priority gets in beside a GEMM whose tiles leave units, an equal one does not") {
    Case two;
    const auto run = [&](bool yields, int priority) {
        Case some;
        some.add(some.gemm(10, yields));
        Cost late = some.kernel(20, 1);
        late.launch.time = Seconds(1);
        some.add(late, {}, 0, -1, priority);
        return some.ends(any_engine());
    };
    CHECK(run(true, 0)[1] == Approx(11));
    CHECK(run(false, 1)[1] == Approx(11));
    // From 1 to 2 s the GEMM has 80 units: 0.2 s lost.
    CHECK(run(true, 1)[1] == Approx(2));
    CHECK(run(true, 1)[0] == Approx(10.2));
}

TEST_CASE("of kernels that wait the higher priority starts first, and nobody overtakes who does not fit") {
    Case some;
    some.add(some.kernel(100, 1));
    some.add(some.kernel(60, 1));                // first of priority 0, at 2 s
    some.add(some.kernel(30, 1));                // beside it
    some.add(some.kernel(20, 1));                // 110 would be too many: at 3 s
    some.add(some.kernel(90, 1), {}, 0, -1, 1);  // before all of them, at 1 s
    CHECK(some.ends(any_engine()) == std::vector<double>{2, 3, 3, 4, 1});
}

TEST_CASE("a successor may start when its predecessor is so far") {
    Case two;
    Cost first = lasts(4);
    first.handoffs.flag = Seconds(0.5);
    first.end = Completion{Seconds(7)};
    const TaskId a = two.add(first);
    const TaskId b = two.add(lasts(1));
    two.graph.add_edge({a, b, 0.25});
    // A quarter is done at 1 s, the flag is seen at 1.5 s.
    const auto ends = two.ends(any_engine());
    CHECK(ends[a] == Approx(11));
    CHECK(ends[b] == Approx(2.5));
}

TEST_CASE("a body waits at its gate, keeps what it holds, and goes on") {
    Case three;
    const TaskId a = three.add(lasts(3));
    Cost gated = lasts(2);
    gated.holds = {{three.table.compute_units(0), 50}};
    const TaskId b = three.add(gated);
    three.graph.add_edge({a, b, 1, 0.5});
    Cost gemm = lasts(4);
    gemm.demands = {{three.table.compute_units(0), 400}};
    const TaskId c = three.add(gemm);
    // b is half done at 1 s, waits until 3 s, ends at 4 s. c runs at half rate until then: 2 done; 2 s more.
    const auto ends = three.ends(any_engine());
    CHECK(ends[b] == Approx(4));
    CHECK(ends[c] == Approx(6));
    // An open gate costs nothing.
    three.costs[a] = lasts(0.5);
    CHECK(three.ends(any_engine())[b] == Approx(2));
}

TEST_CASE("a body of no size passes its gates, too") {
    Case two;
    const TaskId a = two.add(lasts(3));
    const TaskId b = two.add(Cost());
    two.graph.add_edge({a, b, 1, 0.5});
    const TaskId c = two.add(lasts(1));
    two.graph.add_edge({b, c, 0.75});
    const auto ends = two.ends(any_engine());
    CHECK(ends[b] == Approx(3));
    CHECK(ends[c] == Approx(4));
}

TEST_CASE("latencies between tasks are by kind of edge") {
    Case four;
    Cost first = lasts(1);
    first.handoffs = {Seconds(0.1), Seconds(0.2), Seconds(0.4)};
    const TaskId a = four.add(first, {}, 0, 7);
    const TaskId same = four.add(lasts(1), {a}, 0, 7), other = four.add(lasts(1), {a}, 0, 8),
                 remote = four.add(lasts(1), {a}, 1, 7), gated = four.add(lasts(2), {}, 2);
    four.graph.add_edge({a, gated, 1, 0.25});
    const auto ends = four.ends(any_engine());
    CHECK(ends[same] == Approx(2));
    CHECK(ends[other] == Approx(2.1));
    CHECK(ends[remote] == Approx(2.2));
    CHECK(ends[gated] == Approx(2.9));  // a quarter at 0.5 s, waits until 1.4 s, 1.5 s more
}

TEST_CASE("a schedule that waits for ever is an error") {
    Case two;
    // The GEMM polls a flag that only the kernel can set, and leaves it no compute units.
    const TaskId kernel_ready = two.add(lasts(1));
    const TaskId kernel = two.add(two.kernel(10, 1), {kernel_ready});
    const TaskId gemm = two.add(two.gemm(4));
    two.graph.add_edge({kernel, gemm, 1, 0.5});
    const std::string engine = any_engine();
    CHECK_THAT(error_of([&] { two.ends(engine); }),
               Catch::Contains("deadlocks: gemm of gpu 0 waits for ever"));
}

TEST_CASE("launches that can't go side by side go one at a time, and those that waited take longer") {
    Case some;
    Cost kernel = lasts(10);
    kernel.launch.time = Seconds(1);
    kernel.launch.queued = Seconds(3);
    some.add(kernel);         // launched 0-1
    some.add(kernel);         // waits, 1-4
    some.add(kernel);         // waits, 4-7
    some.add(kernel, {}, 1);  // another GPU
    kernel.launch.queued = Seconds();
    some.add(kernel);  // needs no turn
    kernel.launch.queued = Seconds(3);
    some.add(kernel, {4});  // at 11: nobody is being launched
    CHECK(some.ends(any_engine()) == std::vector<double>{11, 14, 17, 11, 11, 22});
}

TEST_CASE("launches of one instant go in the order of their tasks, whatever let them begin") {
    Case some;
    const TaskId one = some.add(lasts(10)), other = some.add(lasts(10));
    Cost kernel = lasts(10);
    kernel.launch.time = Seconds(1);
    kernel.launch.queued = Seconds(3);
    some.add(kernel, {other});  // launched 10-11, though the task that it waits for has the higher number
    some.add(kernel, {one});    // waits, 11-14
    CHECK(some.ends(any_engine()) == std::vector<double>{10, 10, 21, 24});
}

}  // namespace overlap::test::order_test
