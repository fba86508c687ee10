// Fused computation and collective: do results leave as they are made, remote ones first, and whose?
#include <algorithm>
#include <catch2/catch.hpp>

#include "sim/pricing/effects.hpp"
#include "sim/schedules/schedule.hpp"
#include "tests/any_engine.hpp"
#include "tests/test_support.hpp"

namespace overlap::test::work_group_fused_test {
namespace {

constexpr double operand = 80'000;  ///< C of 400 × 100 in bf16

Workload pair_workload(CollectiveKind kind) {
    return {"", "", pair_of(kind, Order::gemm_first, GemmShape{400, 100, 2000})};
}

Workload pooling(CollectiveKind kind, std::vector<std::size_t> needs = {0}) {
    return {"", "",
            std::vector<Operator>{{"pool", StreamingWork{Bytes(1e6), Bytes(operand)}, {}},
                                  {"exchange", CollectiveWork{kind, Bytes(operand)}, std::move(needs)}}};
}

ScheduleParams in_chunks(int chunks) {
    ScheduleParams params;
    params.chunks = chunks;
    params.transfers.direction = Direction::push;
    return params;
}

TaskGraph graph_of(const Workload& workload, const Topology& topology, int chunks) {
    return find_schedule("work_group_fused").build(workload, topology, in_chunks(chunks));
}

}  // namespace

TEST_CASE("results for other ranks are made first, in turn over the peers, and stored at theirs") {
    const Topology topology = topology_of(4, group("full_mesh"));
    for (const Workload& workload :
         {pair_workload(CollectiveKind::all_to_all), pooling(CollectiveKind::all_to_all)}) {
        const TaskGraph graph = graph_of(workload, topology, 2);
        REQUIRE(graph.size() == 4 + 4 * 3 * 2);
        std::vector<double> shares;
        std::vector<int> owners;
        for (TaskId id = 0; id < graph.size(); ++id) {
            const auto* copy = std::get_if<CopyWork>(&graph[id].work);
            if (copy == nullptr || copy->src != 1) continue;
            CHECK(copy->stored);
            CHECK(copy->bytes.si() == operand / 8);
            owners.push_back(copy->dst);
            graph.for_each_edge_into(id, [&](const Edge& edge) {
                CHECK(graph[edge.predecessor].gpu == 1);
                shares.push_back(edge.from);
            });
        }
        CHECK(owners == std::vector<int>{2, 3, 0, 2, 3, 0});
        CHECK(shares == std::vector<double>{0.125, 0.25, 0.375, 0.5, 0.625, 0.75});
    }
}

TEST_CASE("owners add the parts of a reduction up, and store the sum at everybody's for an all-reduce") {
    const Topology topology = topology_of(4, group("full_mesh"));
    const auto kinds = [&](const Workload& workload) {
        std::map<TaskKind, int> counts;
        const TaskGraph graph = graph_of(workload, topology, 2);
        for (TaskId id = 0; id < graph.size(); ++id) {
            ++counts[graph[id].kind()];
            if (graph[id].kind() == TaskKind::reduce) CHECK(predecessors(graph, id).size() == 3 + 1);
        }
        return counts;
    };
    using Counts = std::map<TaskKind, int>;
    CHECK(kinds(pair_workload(CollectiveKind::reduce_scatter)) ==
          Counts{{TaskKind::gemm, 4}, {TaskKind::copy, 24}, {TaskKind::reduce, 8}});
    CHECK(kinds(pooling(CollectiveKind::all_reduce)) ==
          Counts{{TaskKind::memory_bound, 4}, {TaskKind::copy, 48}, {TaskKind::reduce, 8}});
}

TEST_CASE("between nodes the NIC writes what a work-group hands over") {
    const Topology topology = topology_of(2, group("full_mesh") + "," + group("rails"), 2);
    const TaskGraph graph = graph_of(pair_workload(CollectiveKind::all_to_all), topology, 1);
    int stored = 0, written = 0;
    for (TaskId id = 0; id < graph.size(); ++id) {
        const auto* copy = std::get_if<CopyWork>(&graph[id].work);
        if (copy == nullptr) continue;
        const bool same = topology.node_of(copy->src) == topology.node_of(copy->dst);
        CHECK(copy->stored == same);
        (same ? stored : written) += 1;
    }
    CHECK(stored == 4);
    CHECK(written == 8);
}

TEST_CASE("all but the last results are hidden behind the kernel that makes them") {
    // GEMM of 4 tiles, 40 µs; pieces of 20 kB take 2 µs on links of 10 GB/s and leave at 10, 20 and 30 µs:
    // with the flag's 1 µs and the link's 1 µs the last is there at 34. The
    // kernel ends at 40, after its launch.
    const std::string engine = any_engine();
    const Machine machine = machine_of(topology_of(4, group("full_mesh")));
    const Workload workload = pair_workload(CollectiveKind::all_to_all);
    const auto makespan = [&](const TaskGraph& graph) {
        const Costs costs = price(graph, workload, machine, CostModels(), {});
        return to_microseconds(make_engine(engine)->run(graph, costs, machine.resources).makespan);
    };
    CHECK(makespan(graph_of(workload, machine.topology, 1)) == Approx(1 + 40));
}

TEST_CASE("in a list, what can be is fused, and who needs the collective waits for what arrives") {
    // dense needs nothing; interact needs dense and the exchange; the reduction of two results is no pair.
    const Topology topology = topology_of(4, group("full_mesh"));
    const Bytes bytes(operand);
    const Workload workload{
        "", "",
        std::vector<Operator>{{"pool", StreamingWork{bytes, bytes}, {}},
                              {"exchange", CollectiveWork{CollectiveKind::all_to_all, bytes}, {0}},
                              {"dense", GemmShape{400, 100, 100}, {}},
                              {"interact", StreamingWork{bytes, bytes}, {1, 2}},
                              {"reduce", CollectiveWork{CollectiveKind::all_reduce, bytes}, {2, 3}}}};
    const TaskGraph graph = graph_of(workload, topology, 1);
    // Exchange and the two halves of the reduction; sums; pool, dense and interact.
    REQUIRE(graph.size() == 3 * 4 * 3 + 4 + 3 * 4);
    int sent_as_made = 0;
    for (TaskId id = 0; id < graph.size(); ++id) {
        const auto* streaming = std::get_if<MemoryBoundWork>(&graph[id].work);
        if (graph[id].kind() == TaskKind::copy)
            graph.for_each_edge_into(id,
                                     [&](const Edge& edge) { sent_as_made += edge.of_progress() ? 1 : 0; });
        const std::vector<TaskId> before = predecessors(graph, id);
        if (streaming == nullptr || before.empty()) continue;
        // Own kernel, dense, and a copy from each peer.
        CHECK(before.size() == 2 + 3);
        const auto arrives = [&](TaskId task) {
            const auto* copy = std::get_if<CopyWork>(&graph[task].work);
            return copy != nullptr && copy->dst == graph[id].gpu;
        };
        CHECK(std::count_if(before.begin(), before.end(), arrives) == 3);
    }
    CHECK(sent_as_made == 4 * 3);
}

TEST_CASE("a list is served where it is an operator and the collective of its result") {
    const ScheduleEntry& entry = find_schedule("work_group_fused");
    CHECK(entry.handles(pooling(CollectiveKind::all_to_all)));
    CHECK(!entry.handles(pooling(CollectiveKind::all_gather)));
    CHECK(!entry.handles(pooling(CollectiveKind::all_to_all, {})));
    Workload also_read = pooling(CollectiveKind::all_to_all);
    std::get<std::vector<Operator>>(also_read.content)
        .push_back({"reader", StreamingWork{Bytes(1e6), Bytes(1e6)}, {0}});
    CHECK(!entry.handles(also_read));
    CHECK(!entry.handles({"", "", std::vector<Operator>{}}));
    CHECK(!entry.handles(
        {"", "", pair_of(CollectiveKind::all_gather, Order::collective_first, GemmShape{400, 100, 100})}));
}

}  // namespace overlap::test::work_group_fused_test
