// Does a plan match its schema, and are its blocks in the right places?
#include <catch2/catch.hpp>

#include "sim/commands/graph_export.hpp"
#include "sim/run/resolver.hpp"
#include "sim/run/run.hpp"
#include "tests/test_support.hpp"
#include "tests/schema.hpp"

using namespace overlap;
using namespace overlap::test;

namespace {

Json plan_of(const std::string& schedule, const std::string& collective, Json params) {
    const Json config{
        {"topology", "h200_2"},
        {"schedule", schedule},
        {"params", std::move(params)},
        {"workload",
         {{"collective", collective}, {"gemm", {{"m", 80}, {"n", 16}, {"k", 24}, {"dtype", "bf16"}}}}}};
    const Scenario scenario = resolve(read_run_config(config, "test"), shipped);
    const TaskGraph graph = scenario.graph();
    Json json = to_json(graph, scenario.config());
    add_placement(json, place(graph, *scenario.schedule, scenario.workload, scenario.machine->topology,
                              scenario.params));
    return json;
}

/// Buffers of a GPU: a 0, b 1, c 2, stage a 3, stage c 4, parts 5; of the next GPU from 6 on.
const Json& task_named(const Json& plan, const std::string& name, int gpu) {
    for (const Json& task : plan["tasks"])
        if (task["name"] == name && task["gpu"] == gpu) return task;
    throw std::runtime_error("no task " + name);
}

}  // namespace

TEST_CASE("plans are what their schema says") {
    const Schema schema("plan");
    for (const std::string collective : {"all_gather", "reduce_scatter"})
        for (const std::string schedule : {"serial", "ring_chunked", "uniform_fused_1d", "hetero_fused_2d"})
            CHECK(schema.errors(plan_of(schedule, collective, Json::object()), schedule) == "");
    Json plan = plan_of("serial", "all_gather", Json::object());
    plan["tasks"][0]["from"][0].push_back(1);
    CHECK(schema.errors(plan, "plan") != "");
}

// Two GPUs, M = 80: shards of 40 rows, two chunks of 20.
TEST_CASE("chunks of a gathered operand go to the stage and its rows from there to their place") {
    const Json plan = plan_of("hetero_fused_1d", "all_gather", {{"chunks", 2}});
    const Json& copy = task_named(plan, "copy 1>0 s1 c1", 0);
    CHECK(copy["from"] == Json::parse("[[6, 60, 0, 20, 24]]"));
    CHECK(copy["to"] == Json::parse("[[3, 20, 0, 20, 24]]"));
    const Json& step = task_named(plan, "gemm s1 c1", 0);
    CHECK(step["from"] == Json::parse("[[3, 20, 0, 20, 24], [1, 0, 0, 24, 16]]"));
    CHECK(step["to"] == Json::parse("[[4, 20, 0, 20, 16]]"));
    const Json& scatter = task_named(plan, "local_copy c1", 0);
    CHECK(scatter["from"] == Json::parse("[[4, 20, 0, 20, 16]]"));
    CHECK(scatter["to"] == Json::parse("[[2, 60, 0, 20, 16]]"));
    CHECK(task_named(plan, "gemm s0", 0)["to"] == Json::parse("[[2, 0, 0, 40, 16]]"));
    CHECK(plan["inputs"] == Json::parse("[[0, 0, 0, 40, 24], [1, 0, 0, 24, 16],"
                                        " [6, 40, 0, 40, 24], [7, 0, 0, 24, 16]]"));
    CHECK(plan["results"] == Json::parse("[[2, 0, 0, 80, 16], [8, 0, 0, 80, 16]]"));
}

// K = 24 in three blocks of 8 columns; N = 16 in two of 8.
TEST_CASE("column blocks stay in their columns") {
    const Json gather = plan_of("uniform_unfused_2d", "all_gather", {{"chunks", 3}});
    CHECK(task_named(gather, "copy 1>0 s1 c2", 0)["to"] == Json::parse("[[0, 40, 16, 40, 8]]"));
    const Json& gemm = task_named(gather, "gemm s1 c2", 0);
    CHECK(gemm["from"] == Json::parse("[[0, 40, 16, 40, 8], [1, 16, 0, 8, 16]]"));
    CHECK(gemm["accumulate"] == true);

    const Json reduce = plan_of("uniform_unfused_2d", "reduce_scatter", {{"chunks", 2}});
    const Json& part = task_named(reduce, "gemm s0 c1", 1);
    CHECK(part["from"] == Json::parse("[[6, 0, 0, 40, 24], [7, 0, 8, 24, 8]]"));
    CHECK(part["to"] == Json::parse("[[8, 0, 8, 40, 8]]"));
    // Parts by source: those of GPU 1 are rows 40 to 79 of GPU 0's.
    CHECK(task_named(reduce, "copy 1>0 s0 c1", 1)["to"] == Json::parse("[[5, 40, 8, 40, 8]]"));
    const Json& sum = task_named(reduce, "reduce s0 c1", 0);
    CHECK(sum["from"] == Json::parse("[[2, 0, 8, 40, 8], [5, 40, 8, 40, 8]]"));
    CHECK(sum["to"] == Json::parse("[[2, 0, 8, 40, 8]]"));
}
