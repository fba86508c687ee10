#include "sim/engine/dispatcher.hpp"

#include <catch2/catch.hpp>

using namespace overlap;

namespace {

Task on(int gpu, int stream) {
    return {GemmShape{1, 1, 1}, gpu, stream};
}
using Ids = std::vector<TaskId>;

Cost queued(ResourceId queue) {
    Cost cost;
    cost.queue = queue;
    return cost;
}

Cost ahead() {
    Cost cost;
    cost.launch_ahead = true;
    return cost;
}

}  // namespace

TEST_CASE("a stream runs its tasks one after another") {
    TaskGraph graph;
    graph.add(on(0, 0));  // 0
    graph.add(on(0, 0));  // 1: after 0 on the stream
    graph.add(on(0, 1));  // 2: another stream
    const std::vector<Cost> costs(3);
    Dispatcher dispatcher(graph, costs);
    CHECK(dispatcher.begin().launch == Ids{0, 2});
    CHECK(dispatcher.launched(0).set_up == Ids{0});
    // The stream is free after the body, before the task has ended.
    CHECK(dispatcher.body_done(0).launch == Ids{1});
    CHECK(dispatcher.ended(0).launch.empty());
    CHECK(dispatcher.handed_over(0).launch.empty());
    CHECK(dispatcher.launched(1).set_up == Ids{1});
}

TEST_CASE("an edge on the same stream opens at the end, one to another stream after the handoff") {
    TaskGraph graph;
    const TaskId a = graph.add(on(0, 0)), same = graph.add(on(0, 0), {a}), other = graph.add(on(0, 1), {a}),
                 elsewhere = graph.add(on(1, 0), {a});
    const std::vector<Cost> costs(4);
    Dispatcher dispatcher(graph, costs);
    CHECK(dispatcher.begin().launch == Ids{a});
    dispatcher.launched(a);
    CHECK(dispatcher.body_done(a).launch.empty());
    CHECK(dispatcher.ended(a).launch == Ids{same});
    CHECK(dispatcher.handed_over(a).launch == Ids{other, elsewhere});
}

TEST_CASE("a task waits for all of its predecessors") {
    TaskGraph graph;
    const TaskId a = graph.add(on(0, 0)), b = graph.add(on(1, 0)), c = graph.add(on(2, 0), {a, b});
    const std::vector<Cost> costs(3);
    Dispatcher dispatcher(graph, costs);
    CHECK(dispatcher.begin().launch == Ids{a, b});
    for (const TaskId task : {a, b}) {
        dispatcher.launched(task);
        dispatcher.body_done(task);
        dispatcher.ended(task);
    }
    CHECK(dispatcher.handed_over(b).launch.empty());
    CHECK(dispatcher.handed_over(a).launch == Ids{c});
}

TEST_CASE("a launch ahead is over before the stream is free") {
    TaskGraph graph;
    graph.add(on(0, 0));
    graph.add(on(0, 0));
    const std::vector<Cost> costs{Cost(), ahead()};
    Dispatcher dispatcher(graph, costs);
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
    Dispatcher dispatcher(graph, costs);
    dispatcher.begin();
    dispatcher.launched(0);
    CHECK(dispatcher.body_done(0).set_up.empty());
    CHECK(dispatcher.launched(1).set_up == Ids{1});
}

TEST_CASE("a queue serves one task at a time, in the order of arrival") {
    TaskGraph graph;
    for (int stream = 0; stream < 4; ++stream) graph.add(on(0, stream));
    const std::vector<Cost> costs{queued(7), queued(7), queued(7), queued(8)};
    Dispatcher dispatcher(graph, costs);
    CHECK(dispatcher.begin().launch == Ids{0, 1, 2, 3});
    CHECK(dispatcher.launched(2).set_up == Ids{2});
    CHECK(dispatcher.launched(1).set_up.empty());
    CHECK(dispatcher.launched(0).set_up.empty());
    CHECK(dispatcher.launched(3).set_up == Ids{3});   // another queue
    CHECK(dispatcher.body_done(2).set_up == Ids{1});  // came before 0
    CHECK(dispatcher.body_done(3).set_up.empty());
    CHECK(dispatcher.body_done(1).set_up == Ids{0});
    CHECK(dispatcher.body_done(0).set_up.empty());
}

TEST_CASE("what may begin at once is given in the order of task numbers") {
    TaskGraph graph;
    const TaskId a = graph.add(on(0, 0));
    for (int gpu = 5; gpu >= 1; --gpu) graph.add(on(gpu, 0), {a});
    const std::vector<Cost> costs(6);
    Dispatcher dispatcher(graph, costs);
    CHECK(dispatcher.begin().launch == Ids{a});
    CHECK(dispatcher.handed_over(a).launch == Ids{1, 2, 3, 4, 5});
}
