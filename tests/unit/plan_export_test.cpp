// Does a plan match its schema, and are its blocks in the right places?
#include <catch2/catch.hpp>
#include <set>

#include "sim/run/planned.hpp"
#include "sim/run/resolver.hpp"
#include "sim/run/run.hpp"
#include "tests/resolved.hpp"
#include "tests/schema.hpp"
#include "tests/test_support.hpp"

namespace overlap::test::plan_export_test {
namespace {

/// A plan, and as a file: every task by itself.
struct Written {
    Plan plan;
    Json json;
};

Written plan_of(const std::string& schedule, const std::string& collective, Json params) {
    const Json config{
        {"topology", "h200_2"},
        {"schedule", schedule},
        {"params", std::move(params)},
        {"workload",
         {{"collective", collective}, {"gemm", {{"m", 80}, {"n", 16}, {"k", 24}, {"dtype", "bf16"}}}}}};
    const Scenario scenario = resolved(read_run_config(config, "test"));
    const Plan plan = overlap::plan_of(scenario);
    return {plan, to_json(plan, true)};
}

/// Buffers of a GPU: a 0, b 1, c 2, stage a 3, stage c 4, parts 5; of the next GPU from 6 on.
const Json& task_named(const Written& written, const std::string& name, int gpu) {
    const TaskGraph& graph = written.plan.graph;
    for (TaskId id = 0; id < graph.size(); ++id)
        if (graph[id].name() == name && graph[id].gpu == gpu) return written.json["tasks"][id];
    throw std::runtime_error("no task " + name);
}

}  // namespace

TEST_CASE("plans are what their schema says") {
    const Schema schema("plan");
    for (const std::string collective : {"all_gather", "reduce_scatter"})
        for (const std::string schedule : {"serial", "ring_chunked", "uniform_fused_1d", "hetero_fused_2d"})
            for (const bool whole : {false, true}) {
                const Plan plan = plan_of(schedule, collective, Json::object()).plan;
                CHECK(schema.errors(nlohmann::json::parse(to_json(plan, whole).dump()), schedule) == "");
            }
    Json plan = plan_of("serial", "all_gather", Json::object()).json;
    REQUIRE_FALSE(plan.contains("not_placed"));
    plan["tasks"][0]["from"][0].push_back(1);
    CHECK(schema.errors(nlohmann::json::parse(plan.dump()), "plan") != "");
}

TEST_CASE("the plan schema knows every kind of task and every command of a DMA engine") {
    const Schema schema("plan");
    Resolver resolver(shipped);
    std::set<std::string> kinds, keys;
    const auto check = [&](const Json& config) {
        const Scenario scenario = resolver.resolve(read_run_config(config, "test"));
        const Json plan = to_json(overlap::plan_of(scenario), true);
        INFO(config.dump());
        CHECK(schema.errors(nlohmann::json::parse(plan.dump()), "plan") == "");
        for (const Json& task : plan["tasks"]) {
            kinds.insert(task["kind"].get<std::string>());
            for (const auto& item : task.items()) keys.insert(item.key());
            for (const Json& wait : task.value("after", Json::array()))
                if (wait.is_object()) keys.insert("after/task");
        }
    };
    const auto pair = [](const std::string& collective) -> Json {
        return {{"collective", collective}, {"gemm", {{"m", 2048}, {"n", 64}, {"k", 64}, {"dtype", "bf16"}}}};
    };
    const auto serial = [&](const std::string& collective, const Json& params) -> Json {
        return {{"topology", "mi300x_8"},
                {"schedule", "serial"},
                {"workload", pair(collective)},
                {"params", params}};
    };
    check(serial("all_gather", {{"dma_commands", "broadcast"}}));
    check(serial("all_to_all", {{"dma_commands", "swap"}, {"prelaunch", true}}));
    check(serial("all_gather", {{"dma_commands", "back_to_back"}}));
    check(serial("all_gather", {{"algorithm", "library"}}));
    for (const char* schedule : {"flag_gated", "hetero_fused_1d"})
        check({{"topology", "mi300x_8"}, {"schedule", schedule}, {"workload", pair("all_gather")}});
    check({{"topology", "h200_2"},
           {"schedule", "async_tp"},
           {"workload", pair("reduce_scatter")},
           {"host", "pytorch_eager"}});
    // Calls of hosts are no part of a plan: a run with a host adds them.
    CHECK(kinds == std::set<std::string>(task_kind_names.begin(), task_kind_names.end() - 1));
    for (const char* key : {"second_dst", "batch", "prelaunched", "after/task", "parts"}) {
        INFO(key);
        CHECK(keys.contains(key));
    }
}

// Two GPUs, M = 80: shards of 40 rows, two chunks of 20.
TEST_CASE("chunks of a gathered operand go to the stage and its rows from there to their place") {
    const Written plan = plan_of("hetero_fused_1d", "all_gather", {{"chunks", 2}});
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
    CHECK(plan.json["inputs"] == Json::parse("[[0, 0, 0, 40, 24], [1, 0, 0, 24, 16],"
                                             " [6, 40, 0, 40, 24], [7, 0, 0, 24, 16]]"));
    CHECK(plan.json["results"] == Json::parse("[[2, 0, 0, 80, 16], [8, 0, 0, 80, 16]]"));
}

// K = 24 in three blocks of 8 columns; N = 16 in two of 8.
TEST_CASE("column blocks stay in their columns") {
    const Written gather = plan_of("uniform_unfused_2d", "all_gather", {{"chunks", 3}});
    CHECK(task_named(gather, "copy 1>0 s1 c2", 0)["to"] == Json::parse("[[0, 40, 16, 40, 8]]"));
    const Json& gemm = task_named(gather, "gemm s1 c2", 0);
    CHECK(gemm["from"] == Json::parse("[[0, 40, 16, 40, 8], [1, 16, 0, 8, 16]]"));
    CHECK(gemm["accumulate"] == true);

    const Written reduce = plan_of("uniform_unfused_2d", "reduce_scatter", {{"chunks", 2}});
    const Json& part = task_named(reduce, "gemm s0 c1", 1);
    CHECK(part["from"] == Json::parse("[[6, 0, 0, 40, 24], [7, 0, 8, 24, 8]]"));
    CHECK(part["to"] == Json::parse("[[8, 0, 8, 40, 8]]"));
    // Parts by source: those of GPU 1 are rows 40 to 79 of GPU 0's.
    CHECK(task_named(reduce, "copy 1>0 s0 c1", 1)["to"] == Json::parse("[[5, 40, 8, 40, 8]]"));
    const Json& sum = task_named(reduce, "reduce s0 c1", 0);
    CHECK(sum["from"] == Json::parse("[[2, 0, 8, 40, 8], [5, 40, 8, 40, 8]]"));
    CHECK(sum["to"] == Json::parse("[[2, 0, 8, 40, 8]]"));
}

}  // namespace overlap::test::plan_export_test
