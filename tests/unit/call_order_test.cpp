// Do copies stand in the order in which the GPUs that execute them should take them?
#include "sim/collectives/call_order.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "sim/run/resolver.hpp"
#include "sim/run/run.hpp"
#include "tests/test_support.hpp"

namespace overlap::test::call_order_test {
namespace {

template <class Enum, class Names>
Enum named(const std::string& name, const Names& names) {
    return static_cast<Enum>(std::find(names.begin(), names.end(), name) - names.begin());
}

Scenario scenario(const Json& json) {
    static Resolver resolver(shipped);
    return resolver.resolve(read_run_config(json, "x.json"));
}

struct Form {
    std::string collective;
    bool first;  ///< before the GEMM
};
const Form gather_first{"all_gather", true}, scatter_last{"reduce_scatter", false};

Json config(const std::string& topology, const std::string& schedule, const Form& form,
            const std::string& transfer, Json params = Json::object()) {
    params["transfer"] = transfer;
    return {{"topology", topology},
            {"schedule", schedule},
            {"params", std::move(params)},
            {"workload",
             {{"collective", form.collective},
              {"order", form.first ? "collective_first" : "gemm_first"},
              {"gemm", {{"m", 4096}, {"n", 4096}, {"k", 4096}, {"dtype", "bf16"}}}}},
            {"what_if", {{"device.dma.order", "fifo"}}}};
}

/// By GPU that executes copies, the other ends of these in the order of their numbers.
std::map<int, std::vector<int>> rotations(const TaskGraph& graph) {
    std::map<int, std::vector<int>> ends;
    for (TaskId id = 0; id < graph.size(); ++id)
        if (const auto* copy = std::get_if<CopyWork>(&graph[id].work))
            ends[graph[id].gpu].push_back(copy->src == graph[id].gpu ? copy->dst : copy->src);
    return ends;
}

/// Transfers alone over the bytes of seven eighths of A at the rate of a port.
double over_ideal(const std::string& schedule, const std::string& transfer, Json what_if) {
    Json json = config("h100_8", schedule, gather_first, transfer);
    json["workload"]["gemm"] = {{"m", 32768}, {"n", 1024}, {"k", 8192}, {"dtype", "bf16"}};
    json["what_if"] = std::move(what_if);
    const double bytes = 32768.0 * 8192 * 2 * 7 / 8;
    return run(scenario(json)).phases.comm.si() / (bytes / 380e9);
}

}  // namespace

TEST_CASE("in rotation no two GPUs turn to the same one at once, whoever executes the copies") {
    const std::vector<Form> forms{gather_first,          {"all_to_all", true},  scatter_last,
                                  {"all_reduce", false}, {"all_to_all", false}, {"all_gather", false}};
    std::size_t checked = 0;
    for (const std::string schedule :
         {"serial", "shard_direct", "shard_p2p", "hetero_fused_1d", "uniform_unfused_2d", "flag_gated",
          "hierarchical_chunked", "ring_chunked"})
        for (const Form& form : forms) {
            Workload workload;
            workload.content = Pair{named<CollectiveKind>(form.collective, collective_names),
                                    {},
                                    form.first ? Order::collective_first : Order::gemm_first,
                                    ShardDim::m};
            if (!find_schedule(schedule).handles(workload)) continue;
            for (const std::string transfer : {"pull", "push"}) {
                INFO(schedule << ", " << form.collective << (form.first ? " first, " : " last, ")
                              << transfer);
                std::map<std::size_t, std::set<int>> ends;  // by rotation
                std::size_t copies = 0, distinct = 0;
                for (const auto& [gpu, others] :
                     rotations(scenario(config("h200_4", schedule, form, transfer)).graph()))
                    for (std::size_t turn = 0; turn < others.size(); ++turn, ++copies)
                        ends[turn].insert(others[turn]);
                for (const auto& [turn, others] : ends) distinct += others.size();
                CHECK(copies > 0);
                CHECK(distinct == copies);
                ++checked;
            }
        }
    CHECK(checked >= 70);
}

TEST_CASE("each GPU pushes its shards in its own order") {
    using Rotations = std::map<int, std::vector<int>>;
    CHECK(rotations(scenario(config("h200_4", "serial", gather_first, "push")).graph()) ==
          Rotations{{0, {1, 2, 3}}, {1, {2, 3, 0}}, {2, {3, 0, 1}}, {3, {0, 1, 2}}});
    CHECK(rotations(
              scenario(config("h200_4", "serial", scatter_last, "push", {{"order", "ascending"}})).graph()) ==
          Rotations{{0, {1, 2, 3}}, {1, {0, 2, 3}}, {2, {0, 1, 3}}, {3, {0, 1, 2}}});
    // Rank r multiplies the shards of r+1, r+2, …, so r+1 sends to it first, as its own first turn.
    CHECK(rotations(scenario(config("h200_4", "shard_direct", gather_first, "push")).graph()) ==
          Rotations{{0, {3, 2, 1}}, {1, {0, 3, 2}}, {2, {1, 0, 3}}, {3, {2, 1, 0}}});
}

TEST_CASE("an engine that serves first come first served pushes a whole all-gather at the rate of its port") {
    for (const std::string schedule : {"serial", "shard_direct", "shard_p2p"}) {
        INFO(schedule);
        CHECK(over_ideal(schedule, "push", {{"device.dma.order", "fifo"}}) == Approx(1).margin(0.03));
    }
    // One stream of pushes leaves nothing to the engine's own order.
    CHECK(over_ideal("shard_p2p", "push", Json::object()) == Approx(1).margin(0.03));
    // Several streams do, on an H100 as measured: two and more of eight GPUs push into one at any time.
    const double drawn = over_ideal("serial", "push", Json::object());
    CHECK(drawn > 1.7);
    CHECK(drawn < 2.5);
}

TEST_CASE("whole shards by DMA on 8 H100 gain over serial no more than there is to gain") {
    for (const char* host : {"replay", "threads"}) {
        const RunResult result = run(scenario({{"topology", "h100_8"},
                                               {"schedule", "shard_direct"},
                                               {"host", host},
                                               {"params", {{"agent", "dma"}}},
                                               {"workload", "llama3_70b_down_forward"}}));
        INFO(host);
        CHECK(result.phases.serial / result.makespan > (host == std::string("replay") ? 1.5 : 1.3));
        CHECK(result.baseline.speedup > 1.3);
        CHECK(result.baseline.speedup <= 1.001 * (result.baseline.time / result.ideal));
    }
}

}  // namespace overlap::test::call_order_test
