#include "sim/engine/dispatcher.hpp"

#include <catch2/catch.hpp>

#include "tests/test_support.hpp"

namespace overlap::test::dispatcher_test {
namespace {

Task on(int gpu, int stream) {
    return {GemmShape{1, 1, 1}, gpu, stream};
}
using Ids = std::vector<TaskId>;
using enum Handoff;

/// Two GPUs with a DMA engine each: one server.
const ResourceTable& table() {
    static const ResourceTable table(topology_of(2, group("full_mesh")));
    return table;
}

Cost queued(int gpu) {
    Cost cost;
    cost.claim = Claim{table().dma_engine(gpu, 1 - gpu)};
    return cost;
}

Cost ahead() {
    Cost cost;
    cost.launch.ahead = true;
    return cost;
}

}  // namespace

TEST_CASE("a stream runs its tasks one after another") {
    TaskGraph graph;
    graph.add(on(0, 0));  // 0
    graph.add(on(0, 0));  // 1: after 0 on the stream
    graph.add(on(0, 1));  // 2: another stream
    const std::vector<Cost> costs(3);
    Dispatcher dispatcher(graph, costs, table());
    CHECK(dispatcher.begin().launch == Ids{0, 2});
    CHECK(dispatcher.launched(0).set_up == Ids{0});
    // The stream is free after the body, before the task has ended.
    CHECK(dispatcher.body_done(0).launch == Ids{1});
    CHECK(dispatcher.handed_over(0, same_stream).launch.empty());
    CHECK(dispatcher.handed_over(0, other_stream).launch.empty());
    CHECK(dispatcher.launched(1).set_up == Ids{1});
}

TEST_CASE("an edge on the same stream opens at the end, one to another stream after the handoff") {
    TaskGraph graph;
    const TaskId a = graph.add(on(0, 0)), same = graph.add(on(0, 0), {a}), other = graph.add(on(0, 1), {a}),
                 elsewhere = graph.add(on(1, 0), {a});
    const std::vector<Cost> costs(4);
    Dispatcher dispatcher(graph, costs, table());
    CHECK(dispatcher.begin().launch == Ids{a});
    dispatcher.launched(a);
    CHECK(dispatcher.body_done(a).launch.empty());
    for (const Handoff kind : {same_stream, other_stream, other_gpu}) CHECK(dispatcher.hands_over(a, kind));
    CHECK_FALSE(dispatcher.hands_over(a, flag));
    CHECK_FALSE(dispatcher.hands_over(same, same_stream));
    CHECK(dispatcher.handed_over(a, same_stream).launch == Ids{same});
    CHECK(dispatcher.handed_over(a, other_stream).launch == Ids{other});
    CHECK(dispatcher.handed_over(a, other_gpu).launch == Ids{elsewhere});
}

TEST_CASE("a task is released at the latest of the dates at which its predecessors hand over") {
    TaskGraph graph;
    const TaskId a = graph.add(on(0, 0)), b = graph.add(on(1, 0)), c = graph.add(on(2, 0)),
                 d = graph.add(on(3, 0), {a, b, c});
    const std::vector<Cost> costs(4);
    Dispatcher dispatcher(graph, costs, table());
    dispatcher.begin();
    CHECK(dispatcher.handed_over(a, other_gpu, 7, 1).empty());
    CHECK(dispatcher.handed_over(b, other_gpu, 5, 2).empty());
    // c hands over at once, but a only at 7.
    const Dispatcher::Next& next = dispatcher.handed_over(c, other_gpu, 3, 3);
    REQUIRE(next.released.size() == 1);
    CHECK(next.released[0].task == d);
    CHECK(next.released[0].date == 7);
    CHECK(next.launch.empty());
    CHECK(dispatcher.released(d).launch == Ids{d});
}

TEST_CASE("a task waits for all of its predecessors") {
    TaskGraph graph;
    const TaskId a = graph.add(on(0, 0)), b = graph.add(on(1, 0)), c = graph.add(on(2, 0), {a, b});
    const std::vector<Cost> costs(3);
    Dispatcher dispatcher(graph, costs, table());
    CHECK(dispatcher.begin().launch == Ids{a, b});
    for (const TaskId task : {a, b}) {
        dispatcher.launched(task);
        dispatcher.body_done(task);
        dispatcher.handed_over(task, same_stream);
    }
    CHECK(dispatcher.handed_over(b, other_gpu).launch.empty());
    CHECK(dispatcher.handed_over(a, other_gpu).launch == Ids{c});
}

TEST_CASE("a launch ahead is over before the stream is free") {
    TaskGraph graph;
    graph.add(on(0, 0));
    graph.add(on(0, 0));
    const std::vector<Cost> costs{Cost(), ahead()};
    Dispatcher dispatcher(graph, costs, table());
    CHECK(dispatcher.begin().launch == Ids{0, 1});
    CHECK(dispatcher.launched(1).set_up.empty());  // launched, but 0 has the stream
    CHECK(dispatcher.launched(0).set_up == Ids{0});
    const Dispatcher::Next next = dispatcher.body_done(0);
    CHECK(next.launch.empty());
    CHECK(next.set_up == Ids{1});
}

TEST_CASE("a launch that is not over when the stream becomes free is waited for") {
    TaskGraph graph;
    graph.add(on(0, 0));
    graph.add(on(0, 0));
    const std::vector<Cost> costs{Cost(), ahead()};
    Dispatcher dispatcher(graph, costs, table());
    dispatcher.begin();
    dispatcher.launched(0);
    CHECK(dispatcher.body_done(0).set_up.empty());
    CHECK(dispatcher.launched(1).set_up == Ids{1});
}

TEST_CASE("a queue serves one task at a time, in the order of arrival") {
    TaskGraph graph;
    for (int stream = 0; stream < 4; ++stream) graph.add(on(0, stream));
    const std::vector<Cost> costs{queued(0), queued(0), queued(0), queued(1)};
    Dispatcher dispatcher(graph, costs, table());
    CHECK(dispatcher.begin().launch == Ids{0, 1, 2, 3});
    CHECK(dispatcher.launched(2).set_up.empty());  // units are given away at the end of an instant
    CHECK(dispatcher.settle().set_up == Ids{2});
    dispatcher.launched(1);
    CHECK(dispatcher.settle().set_up.empty());
    dispatcher.launched(0);
    dispatcher.launched(3);
    CHECK(dispatcher.settle().set_up == Ids{3});  // another queue
    CHECK(dispatcher.body_done(2).set_up.empty());
    CHECK(dispatcher.settle().set_up == Ids{1});  // came before 0
    dispatcher.body_done(3);
    CHECK(dispatcher.settle().set_up.empty());
    dispatcher.body_done(1);
    CHECK(dispatcher.settle().set_up == Ids{0});
    dispatcher.body_done(0);
    CHECK(dispatcher.settle().set_up.empty());
}

TEST_CASE("requests of one instant count in the order of task numbers") {
    TaskGraph graph;
    for (int stream = 0; stream < 3; ++stream) graph.add(on(0, stream));
    const std::vector<Cost> costs(3, queued(0));
    Dispatcher dispatcher(graph, costs, table());
    dispatcher.begin();
    for (const TaskId task : {2, 1, 0}) dispatcher.launched(task);
    CHECK(dispatcher.settle().set_up == Ids{0});
}

TEST_CASE("a body stops where progress edges leave and arrive") {
    TaskGraph graph;
    const TaskId a = graph.add(on(0, 0)), b = graph.add(on(0, 1)), c = graph.add(on(1, 0));
    graph.add_edge({a, b, 0.25});       // b starts when a quarter of a is done
    graph.add_edge({a, c, 1, 0.5});     // c goes beyond its half only after a
    graph.add_edge({b, c, 0.75, 0.5});  // … and after three quarters of b
    const std::vector<Cost> costs(3);
    Dispatcher dispatcher(graph, costs, table());
    CHECK(dispatcher.begin().launch == Ids{a, c});
    for (const TaskId task : {a, c}) dispatcher.launched(task);
    CHECK(dispatcher.next_stop(a) == 0.25);
    CHECK(dispatcher.next_stop(c) == 0.5);

    const std::size_t quarter = dispatcher.stop_number(a);
    CHECK(dispatcher.flags(quarter));
    CHECK(dispatcher.reached(a).resume == Ids{a});  // it leaves a flag and goes on
    CHECK(dispatcher.next_stop(a) == 1);
    CHECK(dispatcher.flagged(a, quarter).launch == Ids{b});
    CHECK(dispatcher.reached(c).resume.empty());  // it waits
    CHECK(dispatcher.next_stop(c) == 0.5);

    dispatcher.body_done(a);
    CHECK(dispatcher.hands_over(a, flag));
    CHECK(dispatcher.handed_over(a, flag).resume.empty());
    dispatcher.launched(b);
    const std::size_t three_quarters = dispatcher.stop_number(b);
    CHECK(dispatcher.reached(b).resume == Ids{b});
    CHECK(dispatcher.flagged(b, three_quarters).resume == Ids{c});
    CHECK(dispatcher.next_stop(c) == 1);
}

TEST_CASE("what may begin at once is given in the order of task numbers") {
    TaskGraph graph;
    const TaskId a = graph.add(on(0, 0));
    for (int gpu = 5; gpu >= 1; --gpu) graph.add(on(gpu, 0), {a});
    const std::vector<Cost> costs(6);
    Dispatcher dispatcher(graph, costs, table());
    CHECK(dispatcher.begin().launch == Ids{a});
    CHECK(dispatcher.handed_over(a, other_gpu).launch == Ids{1, 2, 3, 4, 5});
}

}  // namespace overlap::test::dispatcher_test
