#include "sim/run/critical_path.hpp"

#include <catch2/catch.hpp>

#include "sim/run/run.hpp"
#include "tests/resolved.hpp"

namespace overlap::test::critical_path_test {
namespace {

/// Two GPUs with 100 compute units and one DMA engine each.
const ResourceTable& machine() {
    static const ResourceTable table(topology_of(2, group("full_mesh")));
    return table;
}

struct Case {
    TaskGraph graph;
    std::vector<Cost> costs;

    TaskId add(double microseconds_long, int stream, std::initializer_list<TaskId> after = {}, int gpu = 0) {
        costs.emplace_back().body = microseconds(microseconds_long);
        return graph.add(Task{GemmShape{1, 1, 1}, gpu, stream}, after);
    }
    std::vector<TaskId> path() const {
        return critical_path(graph, costs, make_engine("flow")->run(graph, costs, machine()), machine());
    }
};

}  // namespace

TEST_CASE("the critical path follows the predecessor that ends last") {
    // Copies of 10 and 30 us, then a GEMM of 20 after both: 30 + 20.
    Case one;
    one.add(10, 2);
    const TaskId slow = one.add(30, 3), last = one.add(20, 0, {0, 1});
    CHECK(one.path() == std::vector<TaskId>{slow, last});
    // Its stream is busy until 40: that decides.
    Case other;
    other.add(30, 3);
    const TaskId before = other.add(40, 0), end = other.add(20, 0, {0});
    CHECK(other.path() == std::vector<TaskId>{before, end});
    // A hand-over to another GPU of 15 us makes the earlier end (10) the later one: 25 against 20.
    Case far;
    const TaskId remote = far.add(10, 2, {}, 1);
    far.add(20, 3);
    far.costs[remote].handoffs.other_gpu = microseconds(15);
    const TaskId both = far.add(5, 0, {0, 1});
    CHECK(far.path() == std::vector<TaskId>{remote, both});
    CHECK(Case().path().empty());
}

TEST_CASE("the critical path goes through the task whose units another one waited for") {
    // Two copies of 10 us on one engine that serves one at a time; both could begin at 0.
    Case one;
    const TaskId first = one.add(10, 2), second = one.add(10, 3);
    for (const TaskId id : {first, second}) one.costs[id].claim = Claim{machine().dma_engine(0, 1)};
    CHECK(one.path() == std::vector<TaskId>{first, second});
}

TEST_CASE("the critical path follows a flag only if the task would not be later without it") {
    // Copy of 40 us; at its half (20 us) a flag lets a GEMM of 10 us pass 0.2 of its body: 20 + 0.8 * 10 = 28.
    const auto with_first = [](double first_us) {
        Case one;
        one.add(40, 2);
        one.add(first_us, 0);
        const TaskId gated = one.add(10, 0);
        one.graph.add_edge({0, gated, 0.5, 0.2});
        one.add(50, 3, {gated});  // ends after the copy
        return one.path();
    };
    CHECK(with_first(1) == std::vector<TaskId>{0, 2, 3});   // by its stream alone it ends at 1 + 10
    CHECK(with_first(25) == std::vector<TaskId>{1, 2, 3});  // 25 + 10 is later than 28
}

TEST_CASE("critical paths of schedules begin at the start, have no hole and end at the makespan") {
    std::size_t looked = 0;
    for (const std::string schedule : {"serial", "ring_chunked", "shard_p2p", "hetero_fused_1d",
                                       "uniform_unfused_2d", "flag_gated", "t3", "async_tp"})
        for (const std::string workload : {"llama3_70b_gate_up_forward", "llama3_70b_down_forward"}) {
            const Json config{{"topology", "h200_2"}, {"schedule", schedule}, {"workload", workload}};
            std::optional<Scenario> scenario;
            try {
                scenario = resolved(read_run_config(config, "x.json"));
            } catch (const UserError&) {
                continue;  // the schedule does not serve the workload
            }
            const RunResult result = run(*scenario);
            const std::vector<Span>& spans = result.observed.timeline.spans();
            const std::vector<TaskId>& path = result.observed.recording->critical;
            INFO(schedule << " " << workload);
            REQUIRE(!path.empty());
            CHECK(spans[path.front()].start == Seconds());
            CHECK(spans[path.back()].end == result.makespan);
            // A hand-over to another stream or GPU, or a poll for a completion, takes less than 25 us on H200.
            for (std::size_t i = 1; i < path.size(); ++i)
                CHECK(result.observed.recording->bodies[path[i]].first - spans[path[i - 1]].end <
                      microseconds(25));
            ++looked;
        }
    CHECK(looked >= 8);
}

}  // namespace overlap::test::critical_path_test
