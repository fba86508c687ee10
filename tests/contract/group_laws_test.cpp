// Laws of collectives of groups of GPUs: what a list on two islands takes, what it moves, what groups share.
#include <catch2/catch.hpp>

#include "tests/contract/laws.hpp"
#include "tests/resolved.hpp"

namespace overlap::test::group_laws_test {
namespace {

Json grouped(Json json, int size, int stride) {
    if (size > 0) json["group"] = {{"size", size}, {"stride", stride}};
    return json;
}

/// all-gather > GEMM, an operator, GEMM > reduce-scatter of groups, and an all-reduce.
Json layer(int size, int stride = 1) {
    const std::int64_t m = 2048, hidden = 1024;
    const auto collective = [&](const char* name, const char* needs, const char* kind) {
        return grouped({{"name", name},
                        {"type", "collective"},
                        {"collective", kind},
                        {"bytes", m * hidden * 2},
                        {"needs", {needs}}},
                       size, stride);
    };
    const auto gemm = [&](const char* name, const char* needs, std::int64_t n, std::int64_t k) -> Json {
        return {{"name", name}, {"type", "gemm"},  {"m", m},          {"n", n},
                {"k", k},       {"dtype", "bf16"}, {"needs", {needs}}};
    };
    const auto streams = [](const char* name, Json needs) -> Json {
        return {{"name", name},
                {"type", "memory_bound"},
                {"read_bytes", 4e6},
                {"write_bytes", 4e6},
                {"needs", std::move(needs)}};
    };
    return {{"operators",
             {streams("norm", Json::array()), collective("in", "norm", "all_gather"),
              gemm("up", "in", 768, hidden), streams("act", {"up"}), gemm("down", "act", hidden, 768),
              collective("out", "down", "reduce_scatter"), collective("sum", "out", "all_reduce")}}};
}

Scenario scenario_of(const std::string& machine, const std::string& schedule, const Json& workload,
                     const Json& params = Json::object(), const Json& what_if = Json::object()) {
    const Json config{{"topology", machine},
                      {"schedule", schedule},
                      {"workload", workload},
                      {"params", params},
                      {"what_if", what_if}};
    return resolved(read_run_config(config, "test"));
}

}  // namespace

TEST_CASE("groups of GPUs as topologies: ranks, nodes, ring, routes") {
    const Topology whole = shipped.topology("mi300x_16");
    const std::vector<Topology> rails = whole.groups({2, 8}), nodes = whole.groups({8, 1});
    REQUIRE(rails.size() == 8);
    REQUIRE(nodes.size() == 2);
    // Rail 3 is ranks 3 and 11, one in each node; node 1 is ranks 8 to 15.
    CHECK((rails[3].whole_rank(0) == 3 && rails[3].whole_rank(1) == 11));
    CHECK((rails[3].nodes() == 2 && rails[3].gpus_per_node() == 1 && rails[3].gpus() == 2));
    CHECK((nodes[1].whole_rank(0) == 8 && nodes[1].nodes() == 1 && nodes[1].gpus_per_node() == 8));
    CHECK(rails[3].route(0, 1).links == whole.route(3, 11).links);
    CHECK(nodes[1].route(2, 5).links == whole.route(10, 13).links);
    CHECK(nodes[1].ring() == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7});
    CHECK(whole.groups({}).size() == 1);
    // Three of seven links; all of a switch's.
    CHECK(shipped.topology("mi300x_8").share_of_links(1, {4, 1}) == Approx(3.0 / 7).epsilon(1e-12));
    CHECK(shipped.topology("h100_8").share_of_links(1, {4, 1}) == 1);
    CHECK_THAT(error_of([&] {
                   whole.groups({3, 1});
               }),
               Catch::Matchers::Contains("do not take in all 16 GPUs"));
    // Ranks 0 and 1, 2 and 3, 4 and 5 of nodes of three: the second group has one GPU in each node.
    CHECK_THAT(error_of([] {
                   topology_of(3, group("full_mesh") + "," + group("rails"), 2).groups({2, 1});
               }),
               Catch::Matchers::Contains("are not alike"));
}

// With GPUs of one speed: of 64 different ones the slowest is slower than of 8. H100 by kernels: its DMA
// engines serve in an order that is drawn, and of eight draws the worst is worse than one.
TEST_CASE("two islands that share no link take what one takes, to the last digit") {
    int cases = 0;
    struct Machines {
        std::string islands, one;
        Json params, what_if;
    };
    for (const Machines& on : {Machines{"mi300x_16", "mi300x_8", {{"agent", "dma"}}, Json::object()},
                               Machines{"h100_64_rail",
                                        "h100_8",
                                        {{"agent", "cu"}, {"copy_cus", 2}},
                                        {{"device.variation.gpu_speed_spread", 0}}}})
        for (const ScheduleEntry& entry : schedules()) {
            if (entry.between_nodes || !entry.takes("agent") || !entry.advised) continue;
            if (on.islands == "h100_64_rail" && entry.own_kernel) continue;  // sampled: large graphs
            Json params = on.params;
            INFO(on.islands << " " << entry.name);
            const Scenario alone = scenario_of(on.one, entry.name, layer(0), params, on.what_if);
            if (entry.takes("chunks")) params["chunks"] = alone.pairs.front().params.chunks;
            const Scenario islands = scenario_of(on.islands, entry.name, layer(8), params, on.what_if);
            CHECK(islands.pairs.size() == alone.pairs.size());
            CHECK(predict(islands).makespan.si() == Approx(predict(alone).makespan.si()).epsilon(1e-12));
            ++cases;
        }
    CHECK(cases >= 20);
}

TEST_CASE("a group of all GPUs is no group, and a list's groups move their bytes only") {
    int cases = 0;
    for (const char* schedule : {"serial", "concurrent", "shard_p2p", "ring_chunked", "flag_gated"})
        for (const char* machine : {"mi300x_8", "h200_8"}) {
            INFO(machine << " " << schedule);
            CHECK(predict(scenario_of(machine, schedule, layer(8))).makespan ==
                  predict(scenario_of(machine, schedule, layer(0))).makespan);
            for (const auto& [size, stride] : {std::pair{4, 1}, std::pair{4, 2}, std::pair{2, 4}}) {
                const Scenario scenario = scenario_of(machine, schedule, layer(size, stride));
                const TaskGraph graph = scenario.graph();
                std::vector<double> bytes(7);
                for (TaskId id = 0; id < graph.size(); ++id)
                    for_each_transfer(graph[id], 8, [&](int src, int dst, double moved) {
                        CHECK(RankGroup{size, stride}.first(src) == RankGroup{size, stride}.first(dst));
                        bytes[static_cast<std::size_t>(graph[id].op)] += moved;
                    });
                // 8 GPUs get (size - 1) / size of 4 MiB: 4 · 3 / 4 = 3 MiB each in groups of 4.
                const double each = 8.0 * (size - 1) / size * 2048 * 1024 * 2;
                CHECK(bytes[1] == Approx(each).epsilon(1e-12));
                CHECK(bytes[5] == Approx(each).epsilon(1e-12));
                CHECK(bytes[6] == Approx(2 * each).epsilon(1e-12));
                ++cases;
            }
        }
    CHECK(cases == 30);
}

TEST_CASE("groups whose routes share links share their bandwidth") {
    const auto gather = [](int stride) {
        const Json operators = Json::array(
            {grouped({{"name", "in"}, {"type", "collective"}, {"collective", "all_gather"}, {"bytes", 1e9}},
                     2, stride)});
        return predict(scenario_of("ring_8", "serial", {{"operators", operators}})).makespan.si();
    };
    // Neighbours have a link each way to themselves. A GPU and the one opposite are four links apart: 8 transfers over 4 of
    // 16 links each, so that a link carries at least 2 of them.
    CHECK(gather(4) > 1.98 * gather(1));
}

TEST_CASE("a library's collective of a group: its own number of GPUs, its share of links") {
    const Machine mesh = shipped_machine("mi300x_8"), fabric = shipped_machine("h200_8");
    const auto body = [](const Machine& machine, const RankGroup& group) {
        const Task task{CollectiveKernelWork{CollectiveKind::all_gather, Bytes(1e9), 0, group}};
        return CostModels().cost(task, machine).body.si();
    };
    // Bus bytes 7/8 and 3/4 of the operand. MI300X: 3 of 7 links, so 3/7 of the bus rate.
    CHECK(body(mesh, {4, 1}) == Approx(body(mesh, {}) * (3.0 / 4) / (7.0 / 8) * 7 / 3).epsilon(1e-12));
    // Two and four GPUs of an H200 have times of their own: 286.93 us of 128 MiB, 1040.23 of 512 MiB, and so on, of which 5.7
    // are latency; 660.33 of 256 MiB, 1271.68 of 512, latency 7.13.
    const double mebi = 1 << 20, beyond = (1e9 - 512 * mebi) / mebi;
    CHECK(body(fabric, {2, 1}) ==
          Approx(1e-6 * (1040.23 + beyond / 384 * (1040.23 - 286.93) - 5.7)).epsilon(1e-9));
    CHECK(body(fabric, {4, 1}) ==
          Approx(1e-6 * (1271.68 + beyond / 256 * (1271.68 - 660.33) - 7.13)).epsilon(1e-9));
}

}  // namespace overlap::test::group_laws_test
