// hierarchical_chunked on N = 3 nodes of L = 2, C = 2 chunks; M = 120, N = 30, K = 60: shards of 20 rows,
// chunks of 10, each 10 · 60 · 2 = 1200 B of A and 10 · 30 · 2 = 600 B of C.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "sim/schedules/schedule.hpp"
#include "tests/test_support.hpp"

namespace overlap::test::hierarchical_chunked_test {
namespace {

TaskGraph build(const std::string& schedule, const Pair& pair, const Topology& topology) {
    const ScheduleEntry& entry = find_schedule(schedule);
    const Json given{{"chunks", 2}};
    const Workload workload{"", "", pair};
    return entry.build(workload, topology, entry.read({given, "params"}, workload, topology));
}

const Topology& nodes() {
    static const Topology topology = topology_of(2, group("full_mesh") + "," + group("rails"), 3);
    return topology;
}

/// Of a rank: bytes of the copies from each other rank, rows of its GEMMs, parts of its sums.
struct Seen {
    std::map<int, std::vector<double>> received;
    std::vector<std::int64_t> rows;
    std::vector<std::size_t> gemm_waits;
    std::vector<int> parts;
};

Seen rank0(const TaskGraph& graph) {
    Seen seen;
    for (TaskId id = 0; id < graph.size(); ++id) {
        const Task& task = graph[id];
        const auto* copy = std::get_if<CopyWork>(&task.work);
        if (copy != nullptr && copy->dst == 0) seen.received[copy->src].push_back(copy->bytes.si());
        if (task.gpu != 0) continue;
        if (const auto* shape = std::get_if<GemmShape>(&task.work)) {
            seen.rows.push_back(shape->m);
            seen.gemm_waits.push_back(predecessors(graph, id).size());
        }
        if (const auto* sum = std::get_if<ReduceWork>(&task.work)) {
            seen.parts.push_back(sum->parts);
            CHECK(predecessors(graph, id).size() == static_cast<std::size_t>(sum->parts));
        }
    }
    return seen;
}

using Sizes = std::vector<double>;
using Rows = std::vector<std::int64_t>;

const GemmShape whole{120, 30, 60};

}  // namespace

TEST_CASE("hierarchical_chunked: chunks come by the rail, and by the node with what its rails got") {
    const TaskGraph graph = build(
        "hierarchical_chunked", pair_of(CollectiveKind::all_gather, Order::collective_first, whole), nodes());
    const Seen seen = rank0(graph);
    CHECK(seen.received.size() == 3);
    CHECK(seen.received.at(2) == Sizes{1200, 1200});
    CHECK(seen.received.at(4) == Sizes{1200, 1200});
    // Own chunk 0, own chunk 1, then two shards' chunk 0 together, two shards' chunk 1.
    CHECK(seen.received.at(1) == Sizes{1200, 1200, 2400, 2400});
    // The own shard, then 10 rows of 5 others a step, after N−1 + 2·(L−1) transfers.
    CHECK(seen.rows == Rows{20, 50, 50});
    CHECK(seen.gemm_waits == std::vector<std::size_t>{0, 4, 4});
    // P·(N−1)·C over NICs, 2·P·(L−1)·C in nodes, P·(C+1) GEMMs, P·C copies of rows to their place.
    CHECK(graph.size() == 6 * 2 * 2 + 2 * 6 * 1 * 2 + 6 * 3 + 6 * 2);
}

TEST_CASE("hierarchical_chunked: a forwarded chunk waits for the rail, not for the other chunk") {
    const TaskGraph graph = build(
        "hierarchical_chunked", pair_of(CollectiveKind::all_gather, Order::collective_first, whole), nodes());
    int checked = 0;
    for (TaskId id = 0; id < graph.size(); ++id) {
        const auto* copy = std::get_if<CopyWork>(&graph[id].work);
        if (copy == nullptr || copy->bytes.si() != 2400) continue;
        const auto before = predecessors(graph, id);
        CHECK(before.size() == 2);
        for (const TaskId arrival : before) {
            CHECK(std::get<CopyWork>(graph[arrival].work).dst == copy->src);
            CHECK(graph[arrival].chunk == graph[id].chunk);
            ++checked;
        }
    }
    CHECK(checked == 6 * 2 * 2);
}

TEST_CASE("hierarchical_chunked mirrored: sums in the node for a rail, then at the owner") {
    const TaskGraph graph = build("hierarchical_chunked",
                                  pair_of(CollectiveKind::reduce_scatter, Order::gemm_first, whole), nodes());
    const Seen seen = rank0(graph);
    CHECK(seen.rows == Rows{50, 50, 20});
    CHECK(seen.received.at(2) == Sizes{600, 600});
    CHECK(seen.received.at(4) == Sizes{600, 600});
    // For the other nodes' rail two chunks together, and the own shard's chunk, step by step.
    CHECK(seen.received.at(1) == Sizes{1200, 600, 1200, 600});
    // Two parts of a node for each chunk; own, neighbour's and two nodes' at the owner.
    CHECK(seen.parts == std::vector<int>{2, 2, 4, 4});

    const TaskGraph all =
        build("hierarchical_chunked", pair_of(CollectiveKind::all_reduce, Order::gemm_first, whole), nodes());
    CHECK(all.size() == graph.size() + 6 * 2 * 2 + 2 * 6 * 1 * 2);
    CHECK(rank0(all).received.at(2) == Sizes{600, 600, 600, 600});
}

TEST_CASE("hierarchical_chunked on one node is hetero_fused_1d") {
    const Topology mesh = topology_of(4, group("full_mesh"));
    const auto described = [&](const std::string& schedule, const Pair& pair) {
        const TaskGraph graph = build(schedule, pair, mesh);
        std::vector<std::string> tasks;
        for (TaskId id = 0; id < graph.size(); ++id)
            tasks.push_back(std::to_string(graph[id].gpu) + " " + stream_name(graph[id].stream) + " " +
                            graph[id].name() + " " + std::to_string(predecessors(graph, id).size()));
        std::sort(tasks.begin(), tasks.end());
        return tasks;
    };
    for (const Pair& pair : {pair_of(CollectiveKind::all_gather, Order::collective_first, whole),
                             pair_of(CollectiveKind::all_gather, Order::collective_first, whole, ShardDim::k),
                             pair_of(CollectiveKind::reduce_scatter, Order::gemm_first, whole)})
        CHECK(described("hierarchical_chunked", pair) == described("hetero_fused_1d", pair));
}

TEST_CASE("hierarchical_chunked does not serve an all-to-all") {
    const Workload workload{"", "", pair_of(CollectiveKind::all_to_all, Order::collective_first, whole)};
    CHECK_FALSE(find_schedule("hierarchical_chunked").handles(workload));
}

}  // namespace overlap::test::hierarchical_chunked_test
