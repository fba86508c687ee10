// Closed forms of ends that are polled for, and of DMA engines that turn from stream to stream. Every
// registered engine must reproduce them.
#include <catch2/catch.hpp>

#include "sim/engine/engine.hpp"
#include "tests/any_engine.hpp"
#include "tests/test_support.hpp"

namespace overlap::test::polls_test {
namespace {

/// Two GPUs with one DMA engine each; times in µs.
struct Copies {
    ResourceTable table{topology_of(2, group("full_mesh"), 1, "", round_device())};
    TaskGraph graph;
    std::vector<Cost> costs;

    TaskId add(double launch, double body, int stream, bool polled, int gpu = 0) {
        Cost cost;
        cost.launch.time = microseconds(launch);
        cost.body = microseconds(body);
        if (polled) cost.end = Polling{microseconds(11), microseconds(9)};
        costs.push_back(cost);
        return graph.add({CopyWork{1 - gpu, gpu, Bytes(1), Bytes(1), Agent::dma}, gpu, stream}, {});
    }
    void add_kernel(double launch, double body, int stream, int gpu = 0) {
        Cost cost;
        cost.launch.time = microseconds(launch);
        cost.body = microseconds(body);
        cost.demands.push_back({table.compute_units(gpu), 1e-9});
        costs.push_back(cost);
        graph.add({GemmShape{1, 1, 1}, gpu, stream}, {});
    }
    std::vector<double> ends(const std::string& engine) const {
        std::vector<double> result;
        for (const TaskTimes& times : make_engine(engine)->run(graph, costs, table).tasks)
            result.push_back(to_microseconds(times.end));
        return result;
    }
};

}  // namespace

TEST_CASE("an end is seen at the next poll") {
    const Polling polling{microseconds(11), microseconds(9)};
    const auto seen = [&](double us) { return to_microseconds(seen_after(polling, microseconds(us))); };
    CHECK(seen(0) == Approx(11));
    CHECK(seen(9) == Approx(11));
    CHECK(seen(12.1) == Approx(20));
    CHECK(seen(18.9) == Approx(20));
    CHECK(seen(21.1) == Approx(29));
    // Halfway between missing the poll and not, at the poll itself; linear within 1 us.
    CHECK(seen(11) == Approx(15.5));
    CHECK(seen(20) == Approx(24.5));
    CHECK(seen(20.5) == Approx(26.75));
    double before = 0;
    for (double us = 0; us < 60; us += 0.1) {
        CHECK(seen(us) >= std::max(us, before) - 1e-9);
        before = seen(us);
    }
}

TEST_CASE("polls count from when the stream began to wait") {
    Copies copies;
    const TaskId first = copies.add(2, 4, 0, true);    // over at 6: seen at 11
    const TaskId second = copies.add(2, 8, 0, true);   // goes on at 6, over at 16: seen at 20
    const TaskId other = copies.add(2, 4, 1, true);    // another stream: seen at 11
    const TaskId far = copies.add(2, 11, 2, true, 1);  // another GPU, over at 13: seen at 20
    const TaskId told = copies.add(2, 4, 3, false);
    const auto ends = copies.ends(any_engine());
    CHECK(ends[first] == Approx(11));
    CHECK(ends[second] == Approx(20));
    CHECK(ends[other] == Approx(11));
    CHECK(ends[far] == Approx(20));
    CHECK(ends[told] == Approx(6));
}

TEST_CASE("a stream that has been idle begins to wait anew") {
    Copies copies;
    copies.add(0, 5, 0, false);
    const TaskId copy = copies.add(0, 5, 0, true);  // begins at 5, over at 10: seen at 16
    CHECK(copies.ends(any_engine())[copy] == Approx(16));
}

TEST_CASE("an end is seen at once while a kernel runs on the GPU that waits, launched or running") {
    Copies copies;
    const TaskId beside = copies.add(0, 5, 0, true);
    const TaskId after = copies.add(0, 9, 0, true);   // over at 14: the kernel was at 10
    const TaskId far = copies.add(0, 5, 1, true, 1);  // the kernel is on the other GPU
    copies.add_kernel(6, 4, 2);
    const auto ends = copies.ends(any_engine());
    CHECK(ends[beside] == Approx(5));
    CHECK(ends[after] == Approx(20));
    CHECK(ends[far] == Approx(11));
}

TEST_CASE("a DMA engine that turns to another stream takes longer to start") {
    Copies copies;
    for (const int stream : {0, 0, 1, 1, 0}) {
        const TaskId copy = copies.add(0, 10, stream, false);
        copies.costs[copy].setup = microseconds(1);
        copies.costs[copy].switch_over = microseconds(4);
        copies.costs[copy].claim = Claim{copies.table.dma_engine(0, 1)};
    }
    // Streams 0 and 1 both ask at 0; then each asks again when its copy is over, behind the other's.
    // 0: 11; turn to 1: 11 + 5 + 10 = 26; turn to 0: 41; to 1: 56; to 0: 71.
    const auto ends = copies.ends(any_engine());
    CHECK(ends[0] == Approx(11));
    CHECK(ends[2] == Approx(26));
    CHECK(ends[1] == Approx(41));
    CHECK(ends[3] == Approx(56));
    CHECK(ends[4] == Approx(71));
}

}  // namespace overlap::test::polls_test
