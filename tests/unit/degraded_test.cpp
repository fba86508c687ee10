#include "sim/topology/degraded.hpp"

#include <catch2/catch.hpp>

#include "tests/test_support.hpp"

namespace overlap::test::degraded_test {

using Catch::Contains;

namespace {

/// `more`: keys of one degraded GPU.
std::string degraded(const std::string& more) {
    return R"(, "degraded": [{)" + more + "}]";
}
std::string share(const std::string& key, const std::string& value) {
    return ", \"" + key + R"(": {"value": )" + value + R"(, "source": "test"})";
}

double bandwidth(const Topology& topology, const std::string& link) {
    for (const Link& one : topology.links())
        if (one.name == link) return one.bandwidth.si();
    return 0;
}

const std::string mesh = group("full_mesh");

}  // namespace

TEST_CASE("a degraded GPU has slower GEMMs, in one node or in all") {
    const Topology one =
        topology_of(4, mesh, 2, degraded(R"("gpu": 1, "node": 1)" + share("gemm_speed", "0.8")));
    const Topology all = topology_of(4, mesh, 2, degraded(R"("gpu": 1)" + share("gemm_speed", "0.8")));
    for (int gpu = 0; gpu < 8; ++gpu) {
        CHECK(one.gemm_speed(gpu) == (gpu == 5 ? 0.8 : 1));
        CHECK(all.gemm_speed(gpu) == (gpu % 4 == 1 ? 0.8 : 1));
    }
    CHECK(all.is_degraded());
    CHECK_FALSE(topology_of(4, mesh).is_degraded());
    CHECK(topology_of(4, mesh).gemm_speed(3) == 1);
}

TEST_CASE("a degraded link has less bandwidth both ways, and its route") {
    const Topology pair = topology_of(4, mesh, 2, degraded(R"("gpu": 1, "to": 3)" + share("links", "0.25")));
    for (const std::string link : {"gpu1->gpu3", "gpu3->gpu1", "gpu5->gpu7", "gpu7->gpu5"})
        CHECK(bandwidth(pair, link) == 2.5e9);
    CHECK(bandwidth(pair, "gpu1->gpu2") == 10e9);
    CHECK(pair.route(1, 3).links.size() == 1);
    CHECK(pair.egress(1).si() == Approx(22.5e9));
    CHECK(pair.egress(3).si() == Approx(22.5e9));
    CHECK(pair.egress(2).si() == Approx(30e9));

    const Topology all = topology_of(4, mesh, 1, degraded(R"("gpu": 1)" + share("links", "0.5")));
    CHECK(all.egress(1).si() == Approx(15e9));
    CHECK(all.egress(0).si() == Approx(25e9));
    CHECK(bandwidth(all, "gpu2->gpu1") == 5e9);
    CHECK(bandwidth(all, "gpu2->gpu0") == 10e9);
}

TEST_CASE("a port of a switch and a NIC can be degraded") {
    const std::string fabric = group("switch", R"(, "name": "hub")") + ", " + group("rails");
    const Topology port =
        topology_of(2, fabric, 2, degraded(R"("gpu": 0, "node": 1)" + share("links", "0.5")));
    CHECK(bandwidth(port, "gpu2->node1.hub") == 5e9);
    CHECK(bandwidth(port, "gpu0->node0.hub") == 10e9);
    CHECK(bandwidth(port, "gpu2->nic2") == 10e9);
    const Topology nic = topology_of(2, fabric, 2, degraded(R"("gpu": 0)" + share("nic", "0.5")));
    CHECK(bandwidth(nic, "gpu2->nic2") == 5e9);
    CHECK(bandwidth(nic, "nic0->gpu0") == 5e9);
    CHECK(bandwidth(nic, "gpu1->nic1") == 10e9);
    CHECK(bandwidth(nic, "gpu0->node0.hub") == 10e9);
    CHECK(nic.egress(0).si() == Approx(10e9));  // inside the node
    const Topology alone = topology_of(1, group("rails"), 2, degraded(R"("gpu": 0)" + share("nic", "0.5")));
    CHECK(alone.egress(1).si() == Approx(5e9));
}

TEST_CASE("degraded GPUs that are not there are refused") {
    const auto building = [](const std::string& more, const std::string& fabric = mesh) {
        return error_of([&] { topology_of(4, fabric, 2, degraded(more)); });
    };
    CHECK_THAT(building(R"("gpu": 4)" + share("links", "0.5")), Contains("/degraded/0/gpu: is 4"));
    CHECK_THAT(building(R"("gpu": 1, "node": 2)" + share("links", "0.5")),
               Contains("/degraded/0/node: is 2"));
    CHECK_THAT(building(R"("gpu": 1)"), Contains("degrades nothing (allowed: gemm_speed, links, nic)"));
    CHECK_THAT(building(R"("gpu": 1)" + share("links", "1.5")), Contains("/degraded/0/links"));
    CHECK_THAT(building(R"("gpu": 1)" + share("nic", "0.5")), Contains("have no NICs"));
    CHECK_THAT(building(R"("gpu": 1, "to": 1)" + share("links", "0.5")), Contains("has no link of its own"));
    CHECK_THAT(building(R"("gpu": 1, "to": 3)" + share("links", "0.5"), group("ring")),
               Contains("/degraded/0/to: is 3, to which GPU 1 has no link of its own"));
    CHECK_THAT(building(R"("gpu": 1, "to": 3)" + share("gemm_speed", "0.5")), Contains("/degraded/0/to"));
}

}  // namespace overlap::test::degraded_test
