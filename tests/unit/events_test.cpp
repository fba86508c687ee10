// Closed forms of ends that other streams wait for: what an event keeps busy, and in which order a GPU sees
// events. Every registered engine must reproduce them.
#include <catch2/catch.hpp>

#include "sim/engine/engine.hpp"
#include "tests/any_engine.hpp"
#include "tests/test_support.hpp"

namespace overlap::test::events_test {
namespace {

/// Pulls of GPU 0, polled for 11 µs after the stream began to wait and every 9 µs from then; times in µs.
struct Pulls {
    ResourceTable table{topology_of(2, group("full_mesh"), 1, "", round_device())};
    TaskGraph graph;
    std::vector<Cost> costs;

    TaskId add(double body, int stream, bool awaited, int queues = 8) {
        Cost cost;
        cost.launch.time = microseconds(2);
        cost.body = microseconds(body);
        cost.end = Polling{microseconds(11), microseconds(9), queues};
        cost.awaited = awaited;
        costs.push_back(cost);
        return graph.add({CopyWork{1, 0, Bytes(1), Bytes(1), Agent::dma}, 0, stream}, {});
    }
    std::vector<double> ends() const {
        std::vector<double> result;
        for (const TaskTimes& times : make_engine(any_engine())->run(graph, costs, table).tasks)
            result.push_back(to_microseconds(times.end));
        return result;
    }
};

}  // namespace

TEST_CASE("a stream goes on after an event when the end has been seen, else when the body is over") {
    for (const bool awaited : {false, true}) {
        Pulls pulls;
        pulls.add(4, 0, awaited);  // over at 6, seen at 11
        pulls.add(7, 0, false);
        const auto ends = pulls.ends();
        CHECK(ends[0] == Approx(11));
        // From 6: over at 15, seen at 20. From 11: over at 20, and the wait starts again: seen at 22.
        CHECK(ends[1] == Approx(awaited ? 22 : 20));
    }
}

TEST_CASE("an end that a task of another stream waits for is an event, one of its own stream is not") {
    for (const int stream : {0, 1}) {
        Pulls pulls;
        const TaskId first = pulls.add(4, 0, false);
        const TaskId second = pulls.add(7, 0, false);
        Cost none;
        none.body = microseconds(1);
        pulls.costs.push_back(none);
        pulls.graph.add({GemmShape{1, 1, 1}, stream == 0 ? 0 : 1, stream}, {first});
        CHECK(pulls.ends()[second] == Approx(stream == 0 ? 20 : 22));
    }
}

TEST_CASE("with untimed events only an end that another GPU waits for is an event") {
    for (const bool other_gpu : {false, true}) {
        Pulls pulls;
        const TaskId first = pulls.add(4, 0, false);
        const TaskId second = pulls.add(7, 0, false);
        for (Cost& cost : pulls.costs) std::get<Polling>(cost.end).own_events = false;
        Cost none;
        none.body = microseconds(1);
        pulls.costs.push_back(none);
        pulls.graph.add({GemmShape{1, 1, 1}, other_gpu ? 1 : 0, 1}, {first});
        CHECK(pulls.ends()[second] == Approx(other_gpu ? 22 : 20));
    }
}

TEST_CASE("a GPU looks for events in queues by turns, each in the order in which they were enqueued") {
    Pulls pulls;
    const TaskId late = pulls.add(40, 0, true, 2);   // over at 42, seen at 47
    pulls.add(4, 1, true, 2);                        // the other queue: 11
    const TaskId behind = pulls.add(4, 2, true, 2);  // over at 6, behind `late`
    const TaskId next = pulls.add(4, 1, true, 2);    // behind the second: over at 17, seen at 22
    const TaskId last = pulls.add(4, 2, true, 2);    // goes on at 47, over at 53, seen at 58
    const auto ends = pulls.ends();
    CHECK(ends[late] == Approx(47));
    CHECK(ends[1] == Approx(11));
    CHECK(ends[behind] == Approx(47));
    CHECK(ends[next] == Approx(22));
    CHECK(ends[last] == Approx(58));
}

TEST_CASE("ends that are no events hold up nobody, and are held up by none") {
    Pulls pulls;
    pulls.add(40, 0, false, 1);
    const TaskId other = pulls.add(4, 1, true, 1);
    const TaskId third = pulls.add(4, 2, false, 1);
    CHECK(pulls.ends()[other] == Approx(11));
    CHECK(pulls.ends()[third] == Approx(11));
}

TEST_CASE("an event keeps its stream busy, not what the task claimed, and delays its own end by nothing") {
    for (const bool awaited : {false, true}) {
        Pulls pushes;
        for (const int stream : {0, 1, 0}) {
            const TaskId copy = pushes.add(10, stream, awaited);
            pushes.costs[copy].end = Completion{.latency = microseconds(3), .event = microseconds(12)};
            pushes.costs[copy].claim = Claim{pushes.table.dma_engine(0, 1)};
        }
        const auto ends = pushes.ends();
        // The engine: 2 – 12, 12 – 22, 22 – 32; stream 0 is free at 24 where an event follows its first task.
        CHECK(ends[0] == Approx(15));
        CHECK(ends[1] == Approx(25));
        CHECK(ends[2] == Approx(awaited ? 39 : 35));
    }
}

}  // namespace overlap::test::events_test
