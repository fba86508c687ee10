// Is the size of a graph, which budgets are made of, that of the graph that is built?
#include <catch2/catch.hpp>

#include "tests/contract/laws.hpp"

namespace overlap::test::graph_size_laws_test {
namespace {

/// Parameters that change which tasks there are; those that a schedule does not take are left out.
const std::vector<Json>& variants() {
    static const std::vector<Json> all{Json::object(),
                                       {{"chunks", 1}},
                                       {{"chunks", 5}, {"agent", "cu"}},
                                       {{"scatter", false}},
                                       {{"gemm", "chunk"}},
                                       {{"comm_shape", "2d"}, {"uniformity", "uniform"}},
                                       {{"comm_shape", "2d"}},
                                       {{"granularity", "unfused"}},
                                       {{"algorithm", "direct"}},
                                       {{"algorithm", "ring"}},
                                       {{"algorithm", "library"}},
                                       {{"dma_commands", "broadcast"}},
                                       {{"dma_commands", "swap"}},
                                       {{"dma_commands", "back_to_back"}, {"transfer", "pull"}},
                                       {{"dma_commands", "back_to_back"}, {"transfer", "push"}}};
    return all;
}

bool takes_all(const ScheduleEntry& entry, const Json& params) {
    return std::all_of(params.items().begin(), params.items().end(),
                       [&](const auto& item) { return entry.takes(item.key()); });
}

ScheduleParams params_of(const ScheduleEntry& entry, const Workload& workload, const Topology& topology,
                         const Json& given) {
    const bool collective_first = workload.pair() == nullptr || workload.pair()->order != Order::gemm_first;
    const Json params = with_defaults(entry, given);
    return read_parameters(ConfigObject(params, "params"), entry.parameters, collective_first,
                           entry.single_stream, topology);
}

/// How many graphs were compared.
int check_sizes(const ScheduleEntry& entry, const Workload& workload, const Topology& topology) {
    int compared = 0;
    for (const Json& given : variants()) {
        if (!takes_all(entry, given)) continue;
        INFO(entry.name << " " << workload.form() << " " << workload.name << " " << topology.name() << " "
                        << given.dump());
        const auto schedule = entry.make();
        ScheduleParams params;
        if (error_of([&] { params = params_of(entry, workload, topology, given); }) != "") continue;
        std::optional<TaskGraph> graph;
        GraphSize size;
        const std::string built = error_of([&] { graph = schedule->build(workload, topology, params); });
        const std::string counted = error_of([&] { size = schedule->size(workload, topology, params); });
        CHECK(built == counted);
        if (!graph) continue;
        CHECK(size.tasks == static_cast<double>(graph->size()));
        CHECK(size.edges == static_cast<double>(graph->edge_count()));
        ++compared;
    }
    return compared;
}

}  // namespace

TEST_CASE("sizes of graphs are counted without building them, for every schedule and form of workload") {
    int compared = 0;
    std::vector<Workload> forms = workload_forms();
    using enum CollectiveKind;
    const GemmShape gemm{1001, 700, 1003};
    // A chain of collectives, each of which a rank waits for in many pieces, and one that is fused.
    forms.push_back({"chain", "",
                     std::vector<Operator>{{"mm", gemm, {}},
                                           {"ar", CollectiveWork{all_reduce, Bytes(1e6)}, {0}},
                                           {"a2a", CollectiveWork{all_to_all, Bytes(1e6)}, {1}},
                                           {"ag", CollectiveWork{all_gather, Bytes(1e6)}, {2}},
                                           {"rs", CollectiveWork{reduce_scatter, Bytes(1e6)}, {3, 1}},
                                           {"mm2", gemm, {4}}}});
    std::vector<Topology> topologies;
    for (const auto& [name, machine] : law_machines()) topologies.push_back(machine.topology);
    for (const char* name : {"t3_ring_8", "h200_2"}) topologies.push_back(shipped.topology(name));
    topologies.push_back(topology_of(1, group("rails"), 5));  // a GPU a node
    topologies.push_back(topology_of(2, group("full_mesh") + "," + group("rails"), 7));
    std::vector<SchedulePtr> entries;
    for (const ScheduleEntry& entry : schedules()) entries.push_back(shipped.schedule(entry.name));
    for (const std::string& preset : shipped.names("schedules")) entries.push_back(shipped.schedule(preset));
    for (const Topology& topology : topologies)
        for (const SchedulePtr& entry : entries)
            for (const Workload& workload : forms)
                if (entry->handles(workload)) compared += check_sizes(*entry, workload, topology);
    CHECK(compared >= 4700);
}

TEST_CASE("the size of a graph that could never be built is counted at once") {
    // A rank: 1023 copies a chunk, its own GEMM, and a fused one a chunk with its copy of rows to their place.
    const Topology topology = shipped.topology("mi300x_1024_rail");
    const GemmShape large{1 << 20, 1024, 1024};
    const Workload pair{"", "", pair_of(CollectiveKind::all_gather, Order::collective_first, large)};
    const ScheduleEntry& entry = find_schedule("hetero_fused_1d");
    const ScheduleParams params = params_of(entry, pair, topology, {{"chunks", 1000}});
    const GraphSize size = entry.make()->size(pair, topology, params);
    CHECK(size.tasks == 1024.0 * (1023 * 1000 + 1 + 2 * 1000));
    CHECK(size.edges == 1024.0 * (1023 * 1000 + 1000));
}

}  // namespace overlap::test::graph_size_laws_test
