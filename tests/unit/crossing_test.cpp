#include <catch2/catch.hpp>

#include "models/cost_model_registry.hpp"
#include "sim/collectives/collective_algorithm.hpp"
#include "sim/topology/device_copy_kernel.hpp"
#include "tests/test_support.hpp"

namespace overlap::test::crossing_test {

TEST_CASE("pushes that cross lose a share of links that they share, and none of links of their own") {
    DeviceSpec device = round_device();
    device.copy_kernel->crossing_loss = 0.2;
    const std::string on_switch = group("switch", R"(, "name": "sw")"), mesh = group("full_mesh");
    const auto link_bytes = [&](const std::string& fabric, Direction direction, bool all_pairs) {
        const Machine machine = machine_of(topology_of(3, fabric, 1, "", device));
        Task task = copy_task(0, 1, 10'000, Agent::cu, direction, 8);
        std::get<CopyWork>(task.work).all_pairs = all_pairs;
        double sum = 0;
        for (const Demand& demand : CostModels().cost(task, machine).demands)
            if (machine.resources[demand.resource].kind == ResourceKind::link) sum += demand.amount;
        return sum;
    };
    const double alone = link_bytes(on_switch, Direction::push, false);
    CHECK(alone == Approx(20'000));  // of two ports
    CHECK(link_bytes(on_switch, Direction::push, true) == Approx(alone / 0.8));
    CHECK(link_bytes(on_switch, Direction::pull, true) == Approx(alone));
    CHECK(link_bytes(mesh, Direction::push, true) == Approx(10'000));
}

TEST_CASE("copies of a schedule cross where a GPU sends to several of its node at once") {
    const Topology four = topology_of(4, group("full_mesh")), two = topology_of(2, group("full_mesh"));
    const auto crossing = [](const Topology& topology, bool single_stream) {
        TransferOptions options;
        options.single_stream = single_stream;
        TaskGraph graph;
        Transfers transfers(graph, topology, options);
        return std::get<CopyWork>(graph[transfers.copy(0, 1, {Bytes(8), Bytes(8)})].work).all_pairs;
    };
    CHECK(crossing(four, false));
    CHECK_FALSE(crossing(four, true));
    CHECK_FALSE(crossing(two, false));
}

TEST_CASE("of the collectives, copies of a direct one cross, and those of a ring do not") {
    const Topology four = topology_of(4, group("full_mesh"));
    for (const std::string algorithm : {"direct", "ring"}) {
        TaskGraph graph;
        Transfers transfers(graph, four, {});
        collective_algorithm(algorithm).build({CollectiveKind::all_gather, Bytes(1e6)}, RankTasks(4),
                                              transfers);
        REQUIRE(graph.size() == 12);
        for (TaskId id = 0; id < graph.size(); ++id)
            CHECK(std::get<CopyWork>(graph[id].work).all_pairs == (algorithm == "direct"));
    }
}

}  // namespace overlap::test::crossing_test
