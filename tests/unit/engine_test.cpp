// Closed forms that every registered engine must reproduce, on hand-made costs.
#include "sim/engine/engine.hpp"

#include <catch2/catch.hpp>
#include <cstring>

#include "tests/any_engine.hpp"
#include "tests/test_support.hpp"

namespace overlap::test::engine_test {
namespace {

/// Three GPUs in a row: 0 to 1 at 10 GB/s, 1 to 2 at 20 GB/s; 100 compute units each.
const ResourceTable& row() {
    static const ResourceTable table(topology_of(
        3, group("links", R"(, "pairs": [[0, 1]])") + "," + group("links", R"(, "pairs": [[1, 2]])", 20)));
    return table;
}
const ResourceId slow = row().link(0);  ///< gpu0->gpu1
const ResourceId fast = row().link(2);  ///< gpu1->gpu2

/// Tasks on streams of their own, or on that of another, with their costs.
struct Case {
    TaskGraph graph;
    std::vector<Cost> costs;
    int streams = 0;

    TaskId add(const Cost& cost, std::initializer_list<TaskId> after = {}, int stream = -1, int gpu = 0) {
        costs.push_back(cost);
        return graph.add(Task{GemmShape{1, 1, 1}, gpu, stream >= 0 ? stream : 100 + streams++}, after);
    }
    EngineResult run(const std::string& engine, std::uint64_t seed = 0,
                     const ResourceTable& table = row()) const {
        return make_engine(engine)->run(graph, costs, table, seed);
    }
};

Cost uses(std::initializer_list<ResourceId> resources, double gigabytes) {
    Cost cost;
    for (const ResourceId id : resources) cost.demands.push_back({id, gigabytes * 1e9});
    return cost;
}

Cost lasts(double seconds) {
    Cost cost;
    cost.body = Seconds(seconds);
    return cost;
}

Cost holding(double units, double seconds) {
    Cost cost = lasts(seconds);
    cost.holds.push_back({row().compute_units(0), units});
    return cost;
}

/// A GEMM on all 100 units of GPU 0.
Cost full_gpu(double seconds) {
    Cost cost = lasts(seconds);
    cost.demands.push_back({row().compute_units(0), 100 * seconds});
    return cost;
}

Cost phases_us(double launch, double setup, double body, double completion, double handoff = 0) {
    Cost cost;
    cost.launch.time = microseconds(launch);
    cost.setup = microseconds(setup);
    cost.body = microseconds(body);
    cost.end = Completion{microseconds(completion)};
    cost.handoffs.other_stream = microseconds(handoff);
    return cost;
}

double end(const EngineResult& result, TaskId task) {
    return result.tasks[task].end.si();
}
double end_us(const EngineResult& result, TaskId task) {
    return to_microseconds(result.tasks[task].end);
}
double start_us(const EngineResult& result, TaskId task) {
    return to_microseconds(result.tasks[task].start);
}

}  // namespace

TEST_CASE("two copies share a link by halves, and what is left has it alone") {
    Case both;
    both.add(uses({slow}, 1));
    both.add(uses({slow}, 3));
    const EngineResult result = both.run(any_engine());
    // 10 GB/s: 5 GB/s each until the first has its 1 GB at 0.2 s; then 2 GB at 10 GB/s take 0.2 s.
    CHECK(end(result, 0) == Approx(0.2));
    CHECK(end(result, 1) == Approx(0.4));
    CHECK(result.makespan.si() == Approx(0.4));
}

TEST_CASE("a simulation that outlasts simulated time is an error, one that ends just before is not") {
    // Simulated time has 2^63 fs, 9,223 s.
    const auto chain_of = [](int tasks) {
        Case chain;
        for (int i = 0; i < tasks; ++i) chain.add(lasts(4000), {}, compute_stream);
        return chain;
    };
    const std::string engine = any_engine();
    CHECK(chain_of(2).run(engine).makespan.si() == Approx(8000));
    CHECK_THAT(error_of([&] { chain_of(3).run(engine); }),
               Catch::Contains("of gpu 0 goes on beyond the end of simulated time, 9,223 s"));
    const Case longer = [] {
        Case one;
        one.add(lasts(1e9));
        return one;
    }();
    CHECK_THAT(error_of([&] { longer.run(engine); }), Catch::Contains("beyond the end of simulated time"));
}

TEST_CASE("a task whose share would last beyond simulated time ends when it gets more") {
    Case both;
    Cost starved = uses({slow}, 1);
    starved.demands.front().weight = 1e-7;  // 1 kB/s beside the other: 1e6 s
    both.add(starved);
    both.add(uses({slow}, 9));
    const EngineResult result = both.run("flow");
    CHECK(end(result, 1) == Approx(0.9));
    CHECK(end(result, 0) == Approx(1.0));
}

TEST_CASE("two bottlenecks in series: what one copy cannot use, the other gets") {
    Case three;
    three.add(uses({slow, fast}, 5));
    three.add(uses({slow}, 5));
    three.add(uses({fast}, 15));
    const EngineResult result = three.run(any_engine());
    // The slow link gives 5 + 5 GB/s, the fast one 5 + 15 GB/s: all take one second.
    for (TaskId task = 0; task < 3; ++task) CHECK(end(result, task) == Approx(1));
}

TEST_CASE("a task at its top rate leaves the rest of a link to others") {
    Case both;
    Cost limited = uses({slow}, 2);
    limited.body = Seconds(1);  // 2 GB/s
    both.add(limited);
    both.add(uses({slow}, 8));
    const EngineResult result = both.run(any_engine());
    CHECK(end(result, 0) == Approx(1));
    CHECK(end(result, 1) == Approx(1));  // 8 GB at 10 − 2 GB/s
}

TEST_CASE("shares follow when all the users of a link change at once") {
    Case handover;
    const TaskId first = handover.add(uses({slow}, 5)), second = handover.add(uses({slow}, 5));
    for (const double gigabytes : {4.6, 4.6, 1.0}) {
        Cost limited = uses({slow}, gigabytes);
        limited.body = Seconds(1);
        handover.add(limited, {first, second});
    }
    const EngineResult result = handover.run(any_engine());
    // 5 GB/s each for a second; then the one of 1 GB/s leaves 4.5 GB/s each, below what two had before, until
    // it ends at 2 s, and 0.1 GB at the top rates of 4.6 GB/s is left.
    CHECK(end(result, 1) == Approx(1));
    CHECK(end(result, 4) == Approx(2));
    CHECK(end(result, 2) == Approx(2 + 0.1 / 4.6));
    CHECK(end(result, 3) == Approx(2 + 0.1 / 4.6));
}

TEST_CASE("alone a body takes its top rate or its slowest demand, whichever is longer") {
    Case one;
    Cost cost = uses({slow, fast}, 2);  // 0.2 s, 0.1 s
    cost.body = Seconds(0.15);
    one.add(cost);
    CHECK(one.run(any_engine()).makespan.si() == Approx(0.2));
    one.costs[0].body = Seconds(0.3);
    CHECK(one.run(any_engine()).makespan.si() == Approx(0.3));
}

TEST_CASE("a kernel that holds half of the compute units makes a GEMM beside it half as fast") {
    Case both;
    both.add(full_gpu(1));
    both.add(holding(50, 1));
    // Half of the work in the first second, the other half in the next 0.5 s: 1.5 times as long.
    const EngineResult result = both.run(any_engine());
    CHECK(end(result, 0) == Approx(1.5));
    CHECK(end(result, 1) == Approx(1));
    // Held for half a second: 0.25 done, then 0.75 s.
    both.costs[1] = holding(50, 0.5);
    CHECK(end(both.run(any_engine()), 0) == Approx(1.25));
}

TEST_CASE("capacity changes take effect in mid-flight, as often as they come") {
    Case three;
    three.add(full_gpu(1));
    const TaskId first = three.add(holding(20, 0.5));
    three.add(lasts(0.1), {first});
    three.add(holding(40, 0.5), {2});
    // 0–0.5 s at 80 %: 0.4. 0.5–0.6 s at 100 %: 0.5. 0.6–1.1 s at 60 %: 0.8. The last 0.2 at 100 %: 1.3 s.
    CHECK(end(three.run(any_engine()), 0) == Approx(1.3));
}

TEST_CASE("held units add up, and a GEMM that needs few of the rest is not slowed") {
    Case three;
    Cost small = lasts(1);
    small.demands.push_back({row().compute_units(0), 40.0});  // 40 units
    three.add(small);
    three.add(holding(30, 1));
    three.add(holding(30, 1));
    CHECK(three.run(any_engine()).makespan.si() == Approx(1));  // 30 + 30 + 40 = 100
    three.costs[2] = holding(50, 1);
    // 20 units are left of the 40 that it could use: half rate for a second, then half a second more.
    CHECK(end(three.run(any_engine()), 0) == Approx(1.5));
}

TEST_CASE("a task is launch, setup, body and completion, and frees its stream after the body") {
    Case three;
    three.add(phases_us(1, 2, 4, 8), {}, 0);
    three.add(phases_us(1, 2, 4, 8), {}, 0);
    Cost ahead = phases_us(1, 2, 4, 8);
    ahead.launch.ahead = true;
    three.costs.push_back(ahead);
    three.graph.add(Task{GemmShape{1, 1, 1}, 0, 0});
    const EngineResult result = three.run(any_engine());
    CHECK(start_us(result, 0) == Approx(0).margin(1e-9));
    CHECK(to_microseconds(result.tasks[0].body) == Approx(3));  // 1 + 2
    CHECK(end_us(result, 0) == Approx(15));                     // 1 + 2 + 4 + 8
    CHECK(start_us(result, 1) == Approx(7));                    // the body before is over
    CHECK(end_us(result, 1) == Approx(22));                     // 7 + 15
    // Its launch was over long ago: at 14 µs, when the body before is over, only 2 + 4 + 8 are left.
    CHECK(start_us(result, 2) == Approx(14));
    CHECK(end_us(result, 2) == Approx(28));
}

TEST_CASE("an event behind a body keeps the stream, not what waits for the task") {
    Case three;
    Cost before = phases_us(1, 0, 10, 0, 3);
    std::get<Completion>(before.end).event = microseconds(2);
    const TaskId first = three.add(before, {}, 0);
    const TaskId same = three.add(phases_us(1, 0, 1, 0), {}, 0);
    const TaskId other = three.add(phases_us(0, 0, 1, 0), {first}, 1);
    const EngineResult result = three.run(any_engine());
    CHECK(end_us(result, first) == Approx(11));
    CHECK(start_us(result, same) == Approx(13));
    CHECK(start_us(result, other) == Approx(14));
}

TEST_CASE("a successor on the same stream waits for the end, on another one for the handoff too") {
    Case three;
    const TaskId first = three.add(phases_us(0, 0, 10, 5, 3), {}, 0);
    const TaskId same = three.add(phases_us(0, 0, 1, 0), {first}, 0);
    const TaskId other = three.add(phases_us(0, 0, 1, 0), {first}, 1);
    const EngineResult result = three.run(any_engine());
    CHECK(end_us(result, first) == Approx(15));
    CHECK(start_us(result, same) == Approx(15));
    CHECK(start_us(result, other) == Approx(18));
    CHECK(to_microseconds(result.makespan) == Approx(19));
}

TEST_CASE("a queue is taken from setup to the end of the body, first come first served") {
    Case three;
    for (int i = 0; i < 3; ++i) {
        Cost cost = phases_us(i == 1 ? 1 : 2, 3, 10, 4);
        cost.claim = Claim{row().dma_engine(0, 1)};
        three.add(cost);
    }
    const EngineResult result = three.run(any_engine());
    // Task 1 comes first (at 1 µs): 1 + 3 + 10 = 14, ends at 18. Tasks 0 and 2 both come at 2 µs, 0 by its
    // number: 14 + 13 = 27, ends at 31; then 27 + 13 = 40, ends at 44.
    CHECK(end_us(result, 1) == Approx(18));
    CHECK(end_us(result, 0) == Approx(31));
    CHECK(end_us(result, 2) == Approx(44));
}

TEST_CASE("tasks of no size end where they begin") {
    Case chain;
    const TaskId a = chain.add(Cost()), b = chain.add(Cost(), {a}, 0);
    const TaskId c = chain.add(lasts(1), {b}, 0), d = chain.add(Cost(), {c}, 0);
    chain.add(Cost(), {d});
    const EngineResult result = chain.run(any_engine());
    CHECK(end(result, b) == 0);
    CHECK(end(result, 4) == Approx(1));
    CHECK(result.makespan.si() == Approx(1));
    CHECK(Case().run(any_engine()).makespan == Seconds());
}

TEST_CASE("the same input twice gives the same result, bit for bit") {
    Case many;
    for (int i = 0; i < 60; ++i) {
        Cost cost = uses(i % 2 == 0 ? std::initializer_list<ResourceId>{slow, fast}
                                    : std::initializer_list<ResourceId>{fast},
                         0.001 * (1 + i * 7 % 11));
        cost.launch.time = microseconds(i % 3);
        if (i % 5 == 0) cost.holds.push_back({row().compute_units(0), 3});
        if (i % 4 == 0) cost.claim = Claim{row().dma_engine(0, 1)};
        const std::vector<TaskId> after(i < 8 ? 0 : 1, static_cast<TaskId>(i - 8 < 0 ? 0 : i - 8));
        many.costs.push_back(cost);
        many.graph.add(Task{GemmShape{1, 1, 1}, 0, i % 12}, after);
    }
    const std::string engine = any_engine();
    const EngineResult once = many.run(engine), again = many.run(engine);
    REQUIRE(once.tasks.size() == 60);
    for (TaskId task = 0; task < 60; ++task)
        CHECK(std::memcmp(&once.tasks[task], &again.tasks[task], sizeof(TaskTimes)) == 0);
    CHECK(once.makespan.si() > 0);
}

TEST_CASE("an unknown engine is refused with the nearest name") {
    CHECK_THAT(error_of([] { make_engine("simgird"); }), Catch::Contains("did you mean 'simgrid'"));
}

}  // namespace overlap::test::engine_test
