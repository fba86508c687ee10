#include <catch2/catch.hpp>
#include <map>

#include "sim/collectives/collective_algorithm.hpp"
#include "tests/test_support.hpp"

namespace overlap::test::collectives_test {
namespace {

constexpr int ranks = 4;

struct Built {
    TaskGraph graph;
    RankTasks done;
};

/// `algorithm` on four ranks with 800 B a rank, each rank's operand made by one GEMM.
Built build(const std::string& algorithm, CollectiveKind kind, int gpus = ranks) {
    Built built;
    const Topology topology = topology_of(gpus, gpus > 1 ? group("full_mesh") : "");
    Transfers transfers(built.graph, topology, TransferOptions{});
    RankTasks ready(static_cast<std::size_t>(gpus));
    for (int rank = 0; rank < gpus; ++rank)
        ready[static_cast<std::size_t>(rank)] = {
            built.graph.add(Task{GemmShape{1, 1, 1}, rank, compute_stream})};
    built.done = collective_algorithm(algorithm).build({kind, Bytes(800)}, ready, transfers);
    return built;
}

std::map<int, double> bytes_received(const TaskGraph& graph) {
    std::map<int, double> bytes;
    for (TaskId id = 0; id < graph.size(); ++id)
        for_each_transfer(graph[id], ranks, [&](int, int dst, double moved) { bytes[dst] += moved; });
    return bytes;
}

std::size_t count(const TaskGraph& graph, TaskKind kind) {
    std::size_t sum = 0;
    for (TaskId id = 0; id < graph.size(); ++id) sum += graph[id].kind() == kind ? 1 : 0;
    return sum;
}

}  // namespace

TEST_CASE("each rank receives three quarters of the operand, twice that for an all-reduce") {
    // Pieces of 800 / 4 = 200 B: 3 · 200 for one pass, 6 · 200 for reduce-scatter and gather.
    using enum CollectiveKind;
    const std::map<CollectiveKind, double> expected{
        {all_gather, 600}, {reduce_scatter, 600}, {all_to_all, 600}, {all_reduce, 1200}};
    int checked = 0;
    for (const CollectiveAlgorithm& entry : collective_algorithms()) {
        for (const auto& [kind, bytes] : expected) {
            if (!entry.handles(kind)) continue;
            INFO(entry.name << " " << name_of(kind));
            const auto received = bytes_received(build(entry.name, kind).graph);
            CHECK(received.size() == ranks);
            // Two flags of four bytes from each of three peers
            const double flags = entry.name == "zero_cta" ? 24 : 0;
            for (const auto& [rank, sum] : received) CHECK(sum == Approx(bytes + flags));
            ++checked;
        }
    }
    // Direct, hierarchical and library all four, ring all but all_to_all, three kernels all_reduce, zero_cta two
    CHECK(checked == 20);
}

TEST_CASE("direct: one copy from every peer, one sum of all parts") {
    using enum CollectiveKind;
    CHECK(count(build("direct", all_gather).graph, TaskKind::copy) == 12);  // 4 · 3
    const Built scatter = build("direct", reduce_scatter);
    CHECK(count(scatter.graph, TaskKind::copy) == 12);
    REQUIRE(scatter.done[0].size() == 1);
    const auto& sum = std::get<ReduceWork>(scatter.graph[scatter.done[0][0]].work);
    CHECK(sum.parts == 4);
    CHECK(sum.bytes.si() == Approx(200));
    // The sum waits for the own part and three arrivals.
    CHECK(predecessors(scatter.graph, scatter.done[0][0]).size() == 4);
    CHECK(count(build("direct", all_reduce).graph, TaskKind::copy) == 24);
}

TEST_CASE("direct: a copy waits for the rank that has the data") {
    const Built gather = build("direct", CollectiveKind::all_gather);
    int copies = 0;
    for (TaskId id = 0; id < gather.graph.size(); ++id) {
        const auto* copy = std::get_if<CopyWork>(&gather.graph[id].work);
        if (copy == nullptr) continue;
        CHECK(predecessors(gather.graph, id) == std::vector<TaskId>{static_cast<TaskId>(copy->src)});
        ++copies;
    }
    CHECK(copies == 12);
}

TEST_CASE("ring: neighbours only, each forwarding what it got the step before") {
    const Built gather = build("ring", CollectiveKind::all_gather);
    CHECK(count(gather.graph, TaskKind::copy) == 12);  // 4 ranks · 3 steps
    int forwarded = 0;
    for (TaskId id = 0; id < gather.graph.size(); ++id) {
        const auto* copy = std::get_if<CopyWork>(&gather.graph[id].work);
        if (copy == nullptr) continue;
        CHECK(copy->dst == (copy->src + 1) % ranks);
        const auto before = predecessors(gather.graph, id);
        REQUIRE(before.size() == 1);
        const Task& source = gather.graph[before[0]];
        if (source.kind() == TaskKind::gemm) {
            CHECK(gather.graph[id].shard == copy->src);  // the own shard goes first
            continue;
        }
        CHECK(std::get<CopyWork>(source.work).dst == copy->src);
        CHECK(source.shard == gather.graph[id].shard);
        ++forwarded;
    }
    CHECK(forwarded == 8);  // steps 2 and 3
}

TEST_CASE("ring: a rank ends with the sum of its own shard, of two parts a step") {
    const Built scatter = build("ring", CollectiveKind::reduce_scatter);
    CHECK(count(scatter.graph, TaskKind::reduce) == 12);
    for (int rank = 0; rank < ranks; ++rank) {
        const auto& done = scatter.done[static_cast<std::size_t>(rank)];
        REQUIRE(done.size() == 1);
        CHECK(scatter.graph[done[0]].gpu == rank);
        CHECK(scatter.graph[done[0]].shard == rank);
        CHECK(std::get<ReduceWork>(scatter.graph[done[0]].work).parts == 2);
    }
}

TEST_CASE("library: one kernel a rank, which is launched behind its own rank and polls the others") {
    const Built reduce = build("library", CollectiveKind::all_reduce);
    CHECK(reduce.graph.size() == 8);  // 4 GEMMs, 4 kernels
    REQUIRE(reduce.done[3].size() == 1);
    CHECK(reduce.graph[reduce.done[3][0]].gpu == 3);
    std::vector<TaskId> before, polled;
    reduce.graph.for_each_edge_into(reduce.done[3][0], [&](const Edge& edge) {
        (edge.of_progress() ? polled : before).push_back(edge.predecessor);
    });
    CHECK(before == std::vector<TaskId>{3});
    CHECK(polled == std::vector<TaskId>{0, 1, 2});
}

TEST_CASE("one rank alone has nothing to exchange") {
    int checked = 0;
    for (const CollectiveAlgorithm& entry : collective_algorithms()) {
        for (std::size_t kind = 0; kind < collective_names.size(); ++kind) {
            if (!entry.handles(static_cast<CollectiveKind>(kind))) continue;
            const Built alone = build(entry.name, static_cast<CollectiveKind>(kind), 1);
            CHECK(alone.graph.size() == 1);  // the GEMM that was there
            CHECK(alone.done == RankTasks{{0}});
            ++checked;
        }
    }
    CHECK(checked == 20);
}

TEST_CASE("an unknown algorithm is refused with the nearest name") {
    CHECK_THAT(error_of([] { collective_algorithm("rign"); }), Catch::Contains("did you mean 'ring'"));
}

TEST_CASE("hierarchical: on one node it is direct") {
    int checked = 0;
    for (std::size_t k = 0; k < collective_names.size(); ++k) {
        const auto kind = static_cast<CollectiveKind>(k);
        const Built direct = build("direct", kind), hierarchical = build("hierarchical", kind);
        REQUIRE(direct.graph.size() == hierarchical.graph.size());
        CHECK(direct.done == hierarchical.done);
        for (TaskId id = 0; id < direct.graph.size(); ++id, ++checked) {
            CHECK(direct.graph[id].name() == hierarchical.graph[id].name());
            CHECK(predecessors(direct.graph, id) == predecessors(hierarchical.graph, id));
        }
    }
    CHECK(checked >= 4 * (4 + 12));  // GEMMs and copies, with the sums of two kinds
}

TEST_CASE("hierarchical: tasks and bytes on 3 nodes of 2") {
    // Pieces of 600 / 6 = 100 B; N = 3 nodes, L = 2 ranks a node, min(4, N−1) = 2 waves of one peer.
    const Topology nodes = topology_of(2, group("full_mesh") + "," + group("rails"), 3);
    const auto built_on_nodes = [&](CollectiveKind kind) {
        Built built;
        Transfers transfers(built.graph, nodes, TransferOptions{});
        built.done = collective_algorithm("hierarchical").build({kind, Bytes(600)}, RankTasks(6), transfers);
        return built;
    };
    const auto sizes = [&](const TaskGraph& graph, int from, int to) {
        std::vector<double> result;
        for (TaskId id = 0; id < graph.size(); ++id)
            if (const auto* copy = std::get_if<CopyWork>(&graph[id].work);
                copy != nullptr && copy->src == from && copy->dst == to)
                result.push_back(copy->bytes.si());
        return result;
    };
    using enum CollectiveKind;
    using Sizes = std::vector<double>;
    const Built gather = built_on_nodes(all_gather);
    CHECK(count(gather.graph, TaskKind::copy) == 6 * (2 + 3));  // rail, and in the node own + a wave each
    CHECK(sizes(gather.graph, 0, 2) == Sizes{100});
    CHECK(sizes(gather.graph, 0, 1) == Sizes{100, 100, 100});
    CHECK(sizes(gather.graph, 0, 3).empty());

    const Built scatter = built_on_nodes(reduce_scatter);
    CHECK(count(scatter.graph, TaskKind::copy) == 6 * (2 + 3));
    CHECK(count(scatter.graph, TaskKind::reduce) == 6 * (2 + 1));  // a wave each, and the whole
    CHECK(sizes(scatter.graph, 5, 1) == Sizes{100});
    CHECK(sizes(scatter.graph, 5, 4) == Sizes{100, 100, 100});
    const auto& last = std::get<ReduceWork>(scatter.graph[scatter.done[0][0]].work);
    CHECK(last.parts == 4);  // own, the neighbour's, and a sum from each of two nodes

    const Built exchange = built_on_nodes(all_to_all);
    CHECK(sizes(exchange.graph, 0, 4) == Sizes{200});  // of both ranks of node 0
    CHECK(sizes(exchange.graph, 0, 1) == Sizes{100, 100, 100});
    CHECK(sizes(exchange.graph, 0, 5).empty());
}

}  // namespace overlap::test::collectives_test
