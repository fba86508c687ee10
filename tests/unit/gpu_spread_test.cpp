#include "models/gpu_spread.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "sim/pricing/effects.hpp"
#include "sim/topology/device_losses.hpp"
#include "tests/test_support.hpp"

namespace overlap::test::gpu_spread_test {

TEST_CASE("the largest of several normal draws") {
    CHECK(expected_largest(1) == Approx(0).margin(1e-12));
    CHECK(expected_largest(2) == Approx(1 / std::sqrt(std::acos(-1.0))));    // 1/sqrt(pi)
    CHECK(expected_largest(3) == Approx(1.5 / std::sqrt(std::acos(-1.0))));  // 3/(2 sqrt(pi))
    CHECK(expected_largest(4) == Approx(1.02937537).epsilon(1e-6));          // Harter's table
    CHECK(expected_largest(8) == Approx(1.42360).epsilon(1e-5));             // likewise
    CHECK(slowest_of(4, 0.01) == Approx(1.0102937537));
    CHECK(slowest_of(1, 0.01) == Approx(1));
    CHECK(slowest_of(4, 0) == 1);
}

TEST_CASE("GEMMs of a graph are those of the slowest GPU, copies are not") {
    const auto priced = [](double spread) {
        DeviceSpec device = round_device();
        device.variation->gpu_speed = spread;
        const Machine machine = machine_of(topology_of(2, group("full_mesh"), 1, "", device));
        TaskGraph graph;
        graph.add(Task{GemmShape{4096, 4096, 4096}});
        graph.add(copy_task(1, 0, 10'000));
        return price(graph, Workload{"", "", std::vector<Operator>()}, machine, CostModels(), Effects());
    };
    const auto alike = priced(0), apart = priced(0.02);
    CHECK(apart[0].body / alike[0].body == Approx(1 + 0.02 / std::sqrt(std::acos(-1.0))));
    CHECK(apart[1].body == alike[1].body);
}

}  // namespace overlap::test::gpu_spread_test
