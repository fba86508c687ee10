// Memory for staging, counted from the graph, against the cells that a placement of the same graph writes
// outside of operands and results; and compute units of communication against what the options ask for.
#include <catch2/catch.hpp>
#include <set>

#include "sim/schedules/placement.hpp"
#include "sim/schedules/staging.hpp"
#include "sim/topology/device_library.hpp"
#include "tests/contract/laws.hpp"
#include "tests/resolved.hpp"

namespace overlap::test::staging_laws_test {
namespace {

/// Bytes on the GPU with most: cells of stages and parts that some task writes.
double written_beyond_operands(const Placement& placement, int gpus) {
    std::vector<std::vector<bool>> written;
    for (const Buffer& buffer : placement.buffers)
        written.emplace_back(static_cast<std::size_t>(buffer.rows * buffer.columns));
    for (const Operands& task : placement.tasks)
        for (const Block& to : task.to)
            for (std::int64_t row = to.row; row < to.row + to.rows; ++row)
                for (std::int64_t column = to.column; column < to.column + to.columns; ++column)
                    written[to.buffer]
                           [static_cast<std::size_t>(row * placement.buffers[to.buffer].columns + column)] =
                               true;
    std::vector<double> bytes(static_cast<std::size_t>(gpus));
    for (std::size_t i = 0; i < written.size(); ++i) {
        const Buffer& buffer = placement.buffers[i];
        if (buffer.name != "stage a" && buffer.name != "stage c" && buffer.name != "parts") continue;
        bytes[static_cast<std::size_t>(buffer.gpu)] +=
            static_cast<double>(std::count(written[i].begin(), written[i].end(), true)) *
            element_size(buffer.dtype).si();
    }
    return *std::max_element(bytes.begin(), bytes.end());
}

struct Case {
    TaskGraph graph;
    ScheduleParams params;
};

Case build_case(const ScheduleEntry& entry, const Workload& workload, const Topology& topology,
                const Json& given) {
    Case result{{}, entry.read({given, "params"}, workload, topology)};
    result.graph = entry.build(workload, topology, result.params);
    return result;
}

bool accepts(const ScheduleEntry& entry, const Json& params) {
    for (const auto& [key, value] : params.items())
        if (!entry.takes(key)) return false;
    return true;
}

/// Flags and barriers have no place in memory.
bool has_places(const ScheduleEntry& entry, const Workload& workload) {
    return entry.handles(workload) && !entry.own_kernel && !entry.barriers;
}

double staging_of(const std::string& schedule, const Workload& workload, const std::string& machine,
                  const Json& given) {
    const ScheduleEntry& entry = find_schedule(schedule);
    const Topology& topology = shipped_machine(machine).topology;
    const Case one = build_case(entry, workload, topology, given);
    return staging_bytes(one.graph, entry, workload, topology, one.params).si();
}

Workload pair_workload(CollectiveKind kind, GemmShape gemm, ShardDim dim = ShardDim::m) {
    const bool gathers = kind == CollectiveKind::all_gather;
    return {"pair", "", pair_of(kind, gathers ? Order::collective_first : Order::gemm_first, gemm, dim)};
}

}  // namespace

TEST_CASE("staging is what a placement writes beyond operands and results, for every schedule and agent") {
    const std::vector<Json> variants{Json::object(),
                                     {{"chunks", 1}},
                                     {{"chunks", 3}},
                                     {{"agent", "cu"}},
                                     {{"chunks", 2}, {"agent", "cu"}, {"transfer", "push"}},
                                     {{"gemm", "chunk"}, {"chunks", 2}},
                                     {{"algorithm", "ring"}},
                                     {{"comm_shape", "2d"}, {"uniformity", "uniform"}, {"chunks", 3}},
                                     {{"comm_shape", "2d"}, {"chunks", 3}},
                                     {{"granularity", "unfused"}, {"chunks", 3}}};
    int cases = 0, with_staging = 0;
    std::set<std::string> seen;
    for (const std::string machine : {"h200_2", "h200_4", "mi300x_8"}) {
        const Topology& topology = shipped_machine(machine).topology;
        for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter})
            for (const std::int64_t rows : {64, 67}) {
                const Workload workload = pair_workload(kind, {rows, 9, 10});
                for (const ScheduleEntry& entry : schedules())
                    for (const Json& given : variants) {
                        if (!has_places(entry, workload) || !accepts(entry, given)) continue;
                        INFO(machine << " " << name_of(kind) << " " << rows << " " << entry.name << " "
                                     << given.dump());
                        const Case one = build_case(entry, workload, topology, given);
                        const double expected = written_beyond_operands(
                            place(one.graph, entry, workload, topology, one.params), topology.gpus());
                        const double counted =
                            staging_bytes(one.graph, entry, workload, topology, one.params).si();
                        // Whole collectives are made of mean pieces where rows do not divide evenly.
                        const double margin = entry.takes("algorithm") && rows % topology.gpus() != 0
                                                  ? topology.gpus() * 9 * 2
                                                  : 0;
                        CHECK(std::abs(counted - expected) <= margin);
                        with_staging += expected > 0 ? 1 : 0;
                        seen.insert(entry.name);
                        ++cases;
                    }
            }
    }
    CHECK(cases > 3 * 2 * 2 * 40);
    CHECK(with_staging > 100);
    CHECK(cases - with_staging > 100);
    for (const ScheduleEntry& entry : schedules())
        for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter})
            if (has_places(entry, pair_workload(kind, {64, 9, 10}))) CHECK(seen.contains(entry.name));
    CHECK(seen.size() > 10);
}

TEST_CASE("staging where there is no placement") {
    // Four GPUs, 64 rows, so 16 a shard; bf16: 2 bytes an element.
    const GemmShape gemm{64, 8, 16};
    const Workload gather = pair_workload(CollectiveKind::all_gather, gemm);
    const Workload reduce = pair_workload(CollectiveKind::reduce_scatter, gemm);
    // One GEMM that polls works in place; before a reduction three partial results of 16 × 8 come.
    CHECK(staging_of("flag_gated", gather, "h200_4", {{"chunks", 2}}) == 0);
    CHECK(staging_of("flag_gated", reduce, "h200_4", {{"chunks", 2}}) == 3 * 16 * 8 * 2);
    // Results that are gathered are computed and received in place.
    const Workload results{"pair", "", pair_of(CollectiveKind::all_gather, Order::gemm_first, gemm)};
    for (const std::string name : {"serial", "ring_chunked", "hierarchical_chunked", "uniform_unfused_2d"})
        CHECK(staging_of(name, results, "h200_4", Json::object()) == 0);
    // Operands in the order of steps need no stage.
    CHECK(staging_of("hetero_fused_1d", gather, "h200_4", {{"chunks", 2}}) == 48 * (16 + 8) * 2);
    CHECK(staging_of("hetero_fused_1d", gather, "h200_4", {{"chunks", 2}, {"scatter", false}}) == 0);
    // Tokens in K (16): slabs of A (64 × 12) and the rows of B that go with them (12 × 8).
    const Workload tokens = pair_workload(CollectiveKind::all_gather, gemm, ShardDim::k);
    CHECK(staging_of("hetero_fused_1d", tokens, "h200_4", {{"chunks", 2}}) == 12 * (64 + 8) * 2);
    CHECK(staging_of("serial", tokens, "h200_4", Json::object()) == 0);
    // A library's kernel keeps its buffers to itself.
    CHECK(staging_of("serial", reduce, "mi300x_8", {{"algorithm", "library"}}) == 0);
    // 16 GPUs on two nodes, 4 rows a shard, stages for 60 rows of A and C; 7 sums of the node for the other
    // node's GPU of this rail, 7 for the own shard from the node and one from the other node.
    CHECK(staging_of("hierarchical_chunked", reduce, "mi300x_16", {{"chunks", 1}}) ==
          60 * (16 + 8) * 2 + (7 + 7 + 1) * 4 * 8 * 2);
}

TEST_CASE("compute units of communication are those that copy kernels hold and sums get") {
    const auto units = [](const std::string& schedule, const Json& params, const std::string& workload) {
        RunConfig config;
        config.origin = "test";
        config.topology = "mi300x_8";
        config.schedule = schedule;
        config.params = params;
        config.workload = workload;
        return run(resolved(config)).used.comm_cus;
    };
    const std::string gather = "ficco_g1", reduce = "llama3_70b_down_forward";
    CHECK(units("hetero_fused_1d", {{"agent", "dma"}}, gather) == 0);
    // All seven peers are read at once, or, by one stream, one after another.
    for (const int cus : {2, 8}) {
        const double each = units("shard_p2p", {{"agent", "cu"}, {"copy_cus", cus}}, gather);
        CHECK(each > 0);
        CHECK(units("shard_direct", {{"agent", "cu"}, {"copy_cus", cus}}, gather) == 7 * each);
    }
    CHECK(units("shard_p2p", {{"agent", "cu"}, {"copy_cus", 8}}, gather) >
          units("shard_p2p", {{"agent", "cu"}, {"copy_cus", 2}}, gather));
    const double sums = units("hetero_unfused_1d", {{"agent", "dma"}}, reduce);
    CHECK(sums > 0);  // DMA engines can't add
    CHECK(sums <= shipped_machine("mi300x_8").topology.device().compute_units);
    const double channels = shipped_machine("mi300x_8").topology.device().collective_library->channels;
    CHECK(channels > 0);
    CHECK(units("serial", {{"algorithm", "library"}}, gather) == channels);
}

}  // namespace overlap::test::staging_laws_test
