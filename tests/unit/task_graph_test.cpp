#include "sim/core/task_graph.hpp"

#include <catch2/catch.hpp>

#include "tests/test_support.hpp"

namespace overlap::test::task_graph_test {
namespace {

Task on(int gpu, int stream) {
    return {GemmShape{1, 1, 1}, gpu, stream};
}

}  // namespace

TEST_CASE("edges are seen from both ends") {
    TaskGraph graph;
    const TaskId a = graph.add(on(0, 0)), b = graph.add(on(1, 0)), c = graph.add(on(2, 0), {a, b});
    CHECK(graph.size() == 3);
    CHECK(graph.edge_count() == 2);
    CHECK(graph.gpus() == 3);
    CHECK(predecessors(graph, c) == std::vector<TaskId>{a, b});
    CHECK(predecessors(graph, a).empty());
}

TEST_CASE("tasks of one stream of one GPU are in the order of their numbers") {
    TaskGraph graph;
    graph.add(on(0, 0));  // 0: first on its stream
    graph.add(on(0, 1));  // 1: another stream
    graph.add(on(1, 0));  // 2: another GPU
    graph.add(on(0, 0));  // 3: after 0
    graph.add(on(0, 0));  // 4: after 3
    const std::vector<TaskId> before{0, 1, 2, 0, 3};
    const std::vector<std::size_t> numbers{0, 1, 2, 0, 0};
    REQUIRE(graph.size() == before.size());
    for (TaskId id = 0; id < graph.size(); ++id) {
        CHECK(graph.stream_predecessor(id) == before[id]);
        CHECK(graph.stream_number(id) == numbers[id]);
    }
    CHECK(graph.streams() == 3);
}

TEST_CASE("the critical path follows edges and stream order") {
    TaskGraph graph;
    const TaskId a = graph.add(on(0, 0));
    graph.add(on(0, 0));  // b, after a by stream
    const TaskId c = graph.add(on(1, 0), {a});
    graph.add(on(1, 1), {a, c});  // d
    const auto path = [&](double a_us, double b_us, double c_us, double d_us) {
        const std::vector<Seconds> durations{microseconds(a_us), microseconds(b_us), microseconds(c_us),
                                             microseconds(d_us)};
        return to_microseconds(graph.critical_path(durations));
    };
    CHECK(path(10, 20, 5, 5) == Approx(30));    // a + b = 30 > a + c + d = 20
    CHECK(path(10, 20, 15, 10) == Approx(35));  // a + c + d = 35
    CHECK(path(0, 0, 0, 7) == Approx(7));
    CHECK(TaskGraph().critical_path({}) == Seconds());
}

TEST_CASE("tasks and streams have names for people") {
    Task copy = copy_task(3, 0, 1);
    copy.shard = 3;
    copy.chunk = 1;
    CHECK(copy.name() == "copy 3>0 s3 c1");
    CHECK(on(0, 0).name() == "gemm");
    CHECK(stream_name(compute_stream) == "compute");
    CHECK(stream_name(local_stream) == "local");
    CHECK(stream_name(transfer_stream(5)) == "transfer 5");
    // The names are by position in the variant.
    CHECK(Task{LocalCopyWork{}}.name() == "local_copy");
    CHECK(Task{ReduceWork{}}.name() == "reduce");
    CHECK(Task{MemoryBoundWork{}}.name() == "memory_bound");
}

}  // namespace overlap::test::task_graph_test
