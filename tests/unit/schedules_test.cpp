// Are the schedules those of sim/schedules/README.md? P = 4 ranks and C = 2 chunks; M = 80, N = 30, K = 60.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "sim/schedules/schedule.hpp"
#include "tests/test_support.hpp"

namespace overlap::test::schedules_test {
namespace {

/// What rank 0 does.
struct Rank0 {
    std::map<int, int> copies_by_stream;
    std::map<double, int> copies_by_bytes;
    std::vector<GemmShape> gemms;         ///< in stream order
    std::vector<std::size_t> gemm_waits;  ///< edges into each
    std::vector<double> local_bytes;
    std::vector<int> reductions;  ///< parts of each
};

Rank0 rank0(const std::string& name, const Pair& pair, const std::string& given = R"({"chunks": 2})") {
    const Topology topology = topology_of(4, group("full_mesh"));
    const ScheduleEntry& entry = find_schedule(name);
    const Json json = parse_json(given, "params");
    const Workload workload{"", "", pair};
    const TaskGraph graph = entry.build(workload, topology, entry.read({json, "params"}, workload, topology));
    Rank0 seen;
    for (TaskId id = 0; id < graph.size(); ++id) {
        const Task& task = graph[id];
        if (task.gpu != 0) continue;
        if (const auto* copy = std::get_if<CopyWork>(&task.work)) {
            ++seen.copies_by_stream[task.stream];
            ++seen.copies_by_bytes[copy->bytes.si()];
        } else if (const auto* shape = std::get_if<GemmShape>(&task.work)) {
            CHECK(task.stream == compute_stream);
            seen.gemms.push_back(*shape);
            seen.gemm_waits.push_back(predecessors(graph, id).size());
        } else if (const auto* local = std::get_if<LocalCopyWork>(&task.work)) {
            seen.local_bytes.push_back(local->bytes.si());
        } else {
            seen.reductions.push_back(std::get<ReduceWork>(task.work).parts);
        }
    }
    return seen;
}

using Shapes = std::vector<GemmShape>;
using Waits = std::vector<std::size_t>;
using Counts = std::map<double, int>;

const GemmShape whole{80, 30, 60};
const Pair gather = pair_of(CollectiveKind::all_gather, Order::collective_first, whole);
const Pair scatter = pair_of(CollectiveKind::reduce_scatter, Order::gemm_first, whole);
GemmShape rows(std::int64_t m) {
    return {m, 30, 60};
}
GemmShape depth(std::int64_t m, std::int64_t k, bool accumulate) {
    return {m, 30, k, DType::bf16, accumulate};
}

// A shard is 20 rows of A, 20 · 60 · 2 B = 2400 B.
constexpr double shard_bytes = 2400;

}  // namespace

TEST_CASE("serial: whole shards from all peers at once, then one GEMM") {
    const Rank0 seen = rank0("serial", gather, "{}");
    CHECK(seen.copies_by_stream.size() == 3);
    CHECK(seen.copies_by_bytes == Counts{{shard_bytes, 3}});
    CHECK(seen.gemms == Shapes{whole});
    CHECK(seen.gemm_waits == Waits{3});
}

TEST_CASE("shard_p2p and shard_direct: own shard at once, then a GEMM for each arrival") {
    for (const std::string name : {"shard_p2p", "shard_direct"}) {
        INFO(name);
        const Rank0 seen = rank0(name, gather, "{}");
        CHECK(seen.copies_by_stream.size() == (name == "shard_p2p" ? 1 : 3));
        CHECK(seen.copies_by_bytes == Counts{{shard_bytes, 3}});
        CHECK(seen.gemms == Shapes{rows(20), rows(20), rows(20), rows(20)});
        CHECK(seen.gemm_waits == Waits{0, 1, 1, 1});
    }
}

TEST_CASE("ring_chunked: three steps of two chunks from one neighbour, GEMMs by shard or by chunk") {
    const Rank0 by_shard = rank0("ring_chunked", gather);
    CHECK(by_shard.copies_by_stream.size() == 1);
    CHECK(by_shard.copies_by_bytes == Counts{{shard_bytes / 2, 6}});
    CHECK(by_shard.gemms == Shapes{rows(20), rows(20), rows(20), rows(20)});
    CHECK(by_shard.gemm_waits == Waits{0, 2, 2, 2});
    const Rank0 by_chunk = rank0("ring_chunked", gather, R"({"chunks": 2, "gemm": "chunk"})");
    CHECK(by_chunk.gemms == Shapes{rows(20), rows(10), rows(10), rows(10), rows(10), rows(10), rows(10)});
}

TEST_CASE("uniform 1d: every step takes a chunk of every shard, the own one too") {
    const Rank0 fused = rank0("uniform_fused_1d", gather);
    CHECK(fused.copies_by_bytes == Counts{{shard_bytes / 2, 6}});
    CHECK(fused.gemms == Shapes{rows(40), rows(40)});  // M/C
    // Each step waits for three peers and its own chunk's local copy.
    CHECK(fused.gemm_waits == Waits{4, 4});
    // Local: own chunk 1200 B into the stage, 40 rows of C of 60 B put in place, a step.
    std::vector<double> local = fused.local_bytes;
    std::sort(local.begin(), local.end());
    CHECK(local == std::vector<double>{1200, 1200, 2400, 2400});
    const Rank0 in_stage = rank0("uniform_fused_1d", gather, R"({"chunks": 2, "scatter": false})");
    CHECK(in_stage.local_bytes.empty());
    const Rank0 unfused = rank0("uniform_unfused_1d", gather);
    CHECK(unfused.gemms == Shapes(8, rows(10)));  // M/(P·C)
    CHECK(unfused.gemm_waits == Waits{0, 1, 1, 1, 0, 1, 1, 1});
    CHECK(unfused.local_bytes.empty());
}

TEST_CASE("hetero 1d: the own shard whole, then chunks of the three others") {
    const Rank0 fused = rank0("hetero_fused_1d", gather);
    CHECK(fused.gemms == Shapes{rows(20), rows(30), rows(30)});  // (P−1)·M/(P·C)
    CHECK(fused.gemm_waits == Waits{0, 3, 3});
    CHECK(fused.local_bytes == std::vector<double>{1800, 1800});  // 30 rows of C of 60 B
    const Rank0 unfused = rank0("hetero_unfused_1d", gather);
    CHECK(unfused.gemms == Shapes{rows(20), rows(10), rows(10), rows(10), rows(10), rows(10), rows(10)});
    CHECK(unfused.gemm_waits == Waits{0, 1, 1, 1, 1, 1, 1});
}

TEST_CASE("2d: blocks of K, the later ones accumulating") {
    const Rank0 fused = rank0("uniform_fused_2d", gather);
    CHECK(fused.copies_by_bytes == Counts{{shard_bytes / 2, 6}});
    CHECK(fused.gemms == Shapes{depth(80, 30, false), depth(80, 30, true)});  // M×N×(K/C)
    CHECK(fused.gemm_waits == Waits{3, 3});
    const Rank0 hetero = rank0("hetero_fused_2d", gather);
    CHECK(hetero.gemms == Shapes{rows(20), depth(60, 30, false), depth(60, 30, true)});
    const Rank0 unfused = rank0("uniform_unfused_2d", gather);
    CHECK(unfused.gemms.size() == 8);
    CHECK(unfused.gemms[3] == depth(20, 30, false));
    CHECK(unfused.gemms[4] == depth(20, 30, true));
}

TEST_CASE("mirrored: chunks are computed for their owners, sent, and summed there") {
    const Rank0 fused = rank0("hetero_fused_1d", scatter);
    CHECK(fused.gemms == Shapes{rows(30), rows(30), rows(20)});  // the own shard last
    CHECK(fused.reductions == std::vector<int>{4, 4});           // a sum of four parts a chunk
    // A chunk is 10 rows of C, 10 · 30 · 2 B = 600 B; three owners, two chunks.
    CHECK(fused.copies_by_bytes == Counts{{600, 6}});
    const Pair reduce = pair_of(CollectiveKind::all_reduce, Order::gemm_first, whole);
    CHECK(rank0("hetero_fused_1d", reduce).copies_by_bytes == Counts{{600, 12}});
    const Pair exchange = pair_of(CollectiveKind::all_to_all, Order::gemm_first, whole);
    CHECK(rank0("hetero_fused_1d", exchange).reductions.empty());
    CHECK(rank0("ring_chunked", scatter).reductions == std::vector<int>(6, 2));
}

TEST_CASE("ficco with the axes of a named point is that point") {
    const Rank0 named = rank0("uniform_unfused_2d", gather);
    const Rank0 by_axes = rank0("ficco", gather, R"({"chunks": 2, "comm_shape": "2d", "uniformity": "uniform",
                                                     "granularity": "unfused"})");
    CHECK(named.gemms == by_axes.gemms);
    CHECK(named.copies_by_bytes == by_axes.copies_by_bytes);
    CHECK(named.gemm_waits == by_axes.gemm_waits);
}

TEST_CASE("an unknown schedule is refused with the nearest name") {
    CHECK_THAT(error_of([] { find_schedule("ring_chunkd"); }),
               Catch::Contains("did you mean 'ring_chunked'"));
}

TEST_CASE("a flag-gated GEMM takes its own shard first, then pieces in the order of their copies") {
    // 2 GPUs, 2 chunks, 100 rows: 50 own, then 25 and 25. Gates at 0.5 and 0.75.
    const Workload gather{
        "", "", pair_of(CollectiveKind::all_gather, Order::collective_first, GemmShape{100, 10, 10})};
    const Topology topology = topology_of(2, group("full_mesh"));
    ScheduleParams params;
    params.chunks = 2;
    const TaskGraph graph = find_schedule("flag_gated").build(gather, topology, params);
    REQUIRE(graph.size() == 2 * 3);
    std::vector<double> gates;
    for (TaskId id = 0; id < graph.size(); ++id)
        graph.for_each_edge_into(id, [&](const Edge& edge) {
            CHECK(graph[edge.predecessor].chunk == static_cast<int>(gates.size() % 2));
            CHECK(graph[id].kind() == TaskKind::gemm);
            CHECK(edge.from == 1);
            gates.push_back(edge.to);
        });
    CHECK(gates == std::vector<double>{0.5, 0.75, 0.5, 0.75});
}

TEST_CASE("before a reduction a flag-gated GEMM sends pieces on its way, the own shard last") {
    // The same mirrored: the peer's 25 rows are done at 0.25, the next at 0.5.
    const Workload scatter{
        "", "", pair_of(CollectiveKind::reduce_scatter, Order::gemm_first, GemmShape{100, 10, 10})};
    ScheduleParams params;
    params.chunks = 2;
    const TaskGraph graph =
        find_schedule("flag_gated").build(scatter, topology_of(2, group("full_mesh")), params);
    REQUIRE(graph.size() == 2 * (1 + 2 + 2));  // GEMM, copies, sums
    std::vector<double> sent;
    for (TaskId id = 0; id < graph.size(); ++id)
        if (graph[id].kind() == TaskKind::copy)
            graph.for_each_edge_into(id, [&](const Edge& edge) { sent.push_back(edge.from); });
    // The host calls for the first copy of either GPU, then for the second.
    CHECK(sent == std::vector<double>{0.25, 0.25, 0.5, 0.5});
}

TEST_CASE("results that are gathered: own chunks to every peer, as they are computed") {
    // C is 80 × 30 on each of 4 GPUs, 80 · 30 · 2 B = 4800 B; all three peers receive it whole.
    const Pair results = pair_of(CollectiveKind::all_gather, Order::gemm_first, whole);
    const Rank0 serial = rank0("serial", results, "{}");
    CHECK(serial.copies_by_bytes == Counts{{4800, 3}});
    CHECK(serial.gemms == Shapes{whole});
    const Rank0 rows_of_c = rank0("uniform_unfused_1d", results);
    CHECK(rows_of_c.copies_by_bytes == Counts{{2400, 6}});
    CHECK(rows_of_c.gemms == Shapes{rows(40), rows(40)});
    CHECK(rows_of_c.local_bytes.empty());
    CHECK(rows_of_c.reductions.empty());
    const Rank0 columns_of_c = rank0("uniform_unfused_2d", results);
    CHECK(columns_of_c.gemms == Shapes(2, GemmShape{80, 15, 60}));
    CHECK(columns_of_c.copies_by_bytes == Counts{{2400, 6}});
    // Ring: own chunks and those of two others go on to the neighbour.
    const Rank0 ring = rank0("ring_chunked", results, R"({"chunks": 2, "gemm": "chunk"})");
    CHECK(ring.gemms == Shapes{rows(40), rows(40)});
    CHECK(ring.copies_by_stream.size() == 1);
    CHECK(ring.copies_by_bytes == Counts{{2400, 6}});
    CHECK(rank0("flag_gated", results).gemms == Shapes{whole});
}

TEST_CASE("a flag-gated GEMM whose results are gathered sends each piece when its rows are done") {
    // 2 GPUs, 4 chunks of 25 rows each: done at 0.25, 0.5, 0.75, and with the last the GEMM has ended.
    const Workload results{"", "",
                           pair_of(CollectiveKind::all_gather, Order::gemm_first, GemmShape{100, 10, 10})};
    ScheduleParams params;
    params.chunks = 4;
    params.gemm_cus = 7;
    const TaskGraph graph =
        find_schedule("flag_gated").build(results, topology_of(2, group("full_mesh")), params);
    REQUIRE(graph.size() == 2 * (1 + 4));
    std::vector<double> sent;
    for (TaskId id = 0; id < graph.size(); ++id) {
        if (graph[id].kind() == TaskKind::gemm) CHECK(graph[id].gemm_cus == 7);
        graph.for_each_edge_into(id, [&](const Edge& edge) { sent.push_back(edge.from); });
    }
    CHECK(sent == std::vector<double>{0.25, 0.25, 0.5, 0.5, 0.75, 0.75, 1, 1});  // by turns of the GPUs
}

TEST_CASE("a preset is the schedule it names, with its own defaults, and those can be overridden") {
    const Topology topology = topology_of(4, group("full_mesh"));
    const std::vector<std::string> presets = test::shipped.names("schedules");
    REQUIRE(presets.size() >= 12);
    for (const std::string& name : presets) {
        const SchedulePtr preset = test::shipped.schedule(name);
        const ScheduleEntry& entry = *preset;
        INFO(entry.name);
        CHECK(entry.name == name);
        const auto base = std::ranges::find_if(schedules(), [&](const ScheduleEntry& other) {
            return other.add_tasks == entry.add_tasks && other.fixed_point == entry.fixed_point &&
                   other.parameters == entry.parameters && other.single_stream == entry.single_stream;
        });
        REQUIRE(base != schedules().end());
        CHECK(base->name != entry.name);
        for (const auto& [parameter, value] : entry.defaults.items()) CHECK(entry.takes(parameter));
        std::size_t served = 0;
        for (const Order order : {Order::collective_first, Order::gemm_first, Order::independent})
            for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
                                              CollectiveKind::all_reduce, CollectiveKind::all_to_all}) {
                Workload workload;
                workload.content = Pair{kind, {80, 30, 60, DType::bf16}, order, ShardDim::m};
                if (!entry.handles(workload)) continue;
                ++served;
                CHECK(base->handles(workload));
                const Json given = with_defaults(entry, Json::object());
                const ScheduleParams params = entry.read({given, "params"}, workload, topology);
                CHECK(entry.build(workload, topology, params).size() > 4);
            }
        CHECK(served >= 1);
    }
    CHECK(with_defaults(*test::shipped.schedule("primus_turbo_ag_gemm"), Json{{"chunks", 4}}) ==
          Json{{"chunks", 4}, {"agent", "dma"}, {"transfer", "push"}});
}

TEST_CASE("a preset of one's own says what is wrong with it") {
    const Json good{{"schema", 1},
                    {"name", "mine"},
                    {"description", "Ours."},
                    {"schedule", "hetero_fused_1d"},
                    {"params", {{"chunks", 2}}},
                    {"workloads", {{{"collective", "all_gather"}, {"order", "collective_first"}}}}};
    const auto with = [&](const Json& patch) {
        Json changed = good;
        changed.merge_patch(patch);
        return error_of([&] { read_preset({changed, "mine.json"}); });
    };
    CHECK(with(Json::object()) == "");
    CHECK(with({{"schedule", "hetero_fused"}}) ==
          "mine.json: /schedule: is 'hetero_fused' (did you mean 'hetero_fused_1d'?)");
    CHECK(with({{"params", {{"chunk", 2}}}}) ==
          "mine.json: /params/chunk: is no parameter of this schedule (did you mean 'chunks'?)");
    CHECK_THAT(with({{"workloads", {{{"collective", "all_gather"}}}}}),
               Catch::Contains("/workloads/0/order: is missing"));
    CHECK_THAT(with({{"chunks", 2}}), Catch::Contains("/chunks"));
    // What its schedule does not serve, it does not, whatever its file says.
    Json everything = good;
    everything["workloads"] = {{{"order", "collective_first"}}, {{"order", "independent"}}};
    const ScheduleEntry entry = read_preset({everything, "mine.json"});
    Workload workload;
    const auto served = [&](CollectiveKind kind, Order order) {
        workload.content = Pair{kind, {80, 30, 60, DType::bf16}, order, ShardDim::k};
        return entry.handles(workload);
    };
    CHECK(served(CollectiveKind::all_gather, Order::collective_first));
    CHECK(served(CollectiveKind::all_to_all, Order::collective_first));
    CHECK_FALSE(served(CollectiveKind::all_gather, Order::gemm_first));
    CHECK_FALSE(served(CollectiveKind::all_gather, Order::independent));
}

}  // namespace overlap::test::schedules_test
