#include "sim/topology/topology.hpp"

#include <catch2/catch.hpp>
#include <fstream>

#include "tests/test_support.hpp"

namespace overlap::test::topology_test {

using Catch::Contains;

namespace {

std::string route_text(const Topology& topology, int src, int dst) {
    std::string text;
    for (const std::size_t link : topology.route(src, dst).links) text += topology.links()[link].name + " ";
    return text;
}

double latency_us(const Topology& topology, int src, int dst) {
    return to_microseconds(topology.route(src, dst).latency);
}

std::string building(int gpus, const std::string& groups, int nodes = 1, const std::string& more = "") {
    return error_of([&] { topology_of(gpus, groups, nodes, more); });
}

}  // namespace

TEST_CASE("a full mesh joins every pair, both ways") {
    const Topology mesh = topology_of(4, group("full_mesh"));
    CHECK(mesh.links().size() == 12);  // 4 · 3
    CHECK(route_text(mesh, 3, 1) == "gpu3->gpu1 ");
    CHECK(latency_us(mesh, 3, 1) == Approx(1));
    CHECK(mesh.egress(2).si() == Approx(30e9));  // 3 links of 10 GB/s
    CHECK(mesh.route(2, 2).links.empty());
    CHECK(mesh.gpus() == 4);
}

TEST_CASE("a ring is crossed the short way, link by link") {
    const Topology ring = topology_of(5, group("ring"));
    CHECK(ring.links().size() == 10);  // 5 neighbours · 2
    CHECK(route_text(ring, 0, 2) == "gpu0->gpu1 gpu1->gpu2 ");
    CHECK(route_text(ring, 0, 3) == "gpu0->gpu4 gpu4->gpu3 ");
    CHECK(latency_us(ring, 0, 2) == Approx(2));
    CHECK(topology_of(2, group("ring")).links().size() == 2);  // the way round is the same link
    CHECK(topology_of(1, group("ring")).links().empty());
}

TEST_CASE("a torus joins neighbours in every dimension") {
    const Topology torus = topology_of(12, group("torus", R"(, "dims": [4, 3])"));
    CHECK(torus.links().size() == 48);  // 12 GPUs with 4 neighbours each
    // GPU 4·y + x: from (0,0) to (3,2) the way round is one step in each dimension.
    CHECK(torus.route(0, 11).links.size() == 2);
    CHECK(torus.route(0, 2).links.size() == 2);
    CHECK(torus.route(0, 5).links.size() == 2);
    // Extent 2 has one link, not two; extent 1 none: 2 × 3 × 1 is 2 rings of 3 and 3 rungs, both ways.
    CHECK(topology_of(6, group("torus", R"(, "dims": [2, 3, 1])")).links().size() == 18);
}

TEST_CASE("through a switch every route is two links of half the latency") {
    const Topology fabric = topology_of(4, group("switch", R"(, "name": "nv")"));
    CHECK(fabric.links().size() == 8);  // a port a GPU, both ways
    CHECK(route_text(fabric, 0, 3) == "gpu0->nv nv->gpu3 ");
    CHECK(latency_us(fabric, 0, 3) == Approx(1));
    CHECK_FALSE(fabric.route(0, 3).through_nic);
    CHECK(fabric.egress(0).si() == Approx(10e9));
}

TEST_CASE("listed links: the route is the fastest for a megabyte, not the shortest") {
    // 0–2 directly at 1 GB/s takes 1049 µs for 1 MiB; 0–1–2 at 10 GB/s twice 105 µs.
    const Topology listed = topology_of(3, group("links", R"(, "pairs": [[0, 1], [1, 2]])") + "," +
                                               group("links", R"(, "pairs": [[0, 2]])", 1));
    CHECK(route_text(listed, 0, 2) == "gpu0->gpu1 gpu1->gpu2 ");
    CHECK(listed.links().size() == 6);
}

TEST_CASE("where a GPU is joined to all others, a way over faster links is still found") {
    // 1 MiB at 1 GB/s takes 1.05 ms, over two links of 10 GB/s 0.21 ms; over a third of 6 GB/s 0.17 ms.
    const auto pairs = [](const std::string& list, double bandwidth) {
        return group("links", R"(, "pairs": )" + list, bandwidth, 0);
    };
    const Topology listed =
        topology_of(3, pairs("[[0, 1]]", 1) + "," + pairs("[[0, 2]]", 10) + "," + pairs("[[1, 2]]", 10));
    CHECK(route_text(listed, 0, 1) == "gpu0->gpu2 gpu2->gpu1 ");
    CHECK(route_text(listed, 0, 2) == "gpu0->gpu2 ");
    const Topology even =
        topology_of(3, pairs("[[0, 1]]", 6) + "," + pairs("[[0, 2]]", 10) + "," + pairs("[[1, 2]]", 10));
    CHECK(route_text(even, 0, 1) == "gpu0->gpu1 ");
    const Topology both =
        topology_of(4, group("full_mesh", "", 1, 0) + "," + group("switch", R"(, "name": "hub")", 10, 0));
    CHECK(route_text(both, 0, 1) == "gpu0->hub hub->gpu1 ");
    // Twice the least time and no more: both ways take as long, and the link is taken.
    const Topology equal =
        topology_of(3, pairs("[[0, 1]]", 5) + "," + pairs("[[0, 2]]", 10) + "," + pairs("[[1, 2]]", 10));
    CHECK(route_text(equal, 0, 1) == "gpu0->gpu1 ");
}

TEST_CASE("rails: NIC i is on leaf i, other rails are reached through a neighbour") {
    const Topology nodes = topology_of(2, group("full_mesh") + "," + group("rails", "", 10, 4), 2);
    // In a node 2 links; a GPU has NIC and leaf, both ways: 2 nodes · 2 + 4 GPUs · 4.
    CHECK(nodes.links().size() == 20);
    CHECK(nodes.gpus() == 4);
    CHECK(nodes.node_of(1) == 0);
    CHECK(nodes.node_of(2) == 1);
    CHECK(route_text(nodes, 0, 2) == "gpu0->nic0 nic0->leaf0 leaf0->nic2 nic2->gpu2 ");
    CHECK(latency_us(nodes, 0, 2) == Approx(4));  // 4 · 4/4
    CHECK(nodes.route(0, 2).through_nic);
    // Cross-rail: one hop in a node and the rail.
    CHECK(nodes.route(0, 3).links.size() == 5);
    CHECK(latency_us(nodes, 0, 3) == Approx(5));
    CHECK(nodes.route(0, 3).through_nic);
    CHECK_FALSE(nodes.route(0, 1).through_nic);
}

TEST_CASE("a node has a switch of its own") {
    const Topology nodes = topology_of(2, group("switch", R"(, "name": "nv")") + "," + group("rails"), 2);
    CHECK(route_text(nodes, 2, 3) == "gpu2->node1.nv node1.nv->gpu3 ");
}

TEST_CASE("a peer without a route is an error that names it") {
    const Topology apart = topology_of(3, group("links", R"(, "pairs": [[0, 1]])"));
    CHECK(error_of([&] { apart.route(0, 1); }) == "");
    CHECK_THAT(error_of([&] { apart.route(0, 2); }), Contains("topology small: no route from gpu0 to gpu2"));
    CHECK_THAT(error_of([&] { topology_of(2, "").route(1, 0); }), Contains("no route from gpu1 to gpu0"));
}

TEST_CASE("the ring order is the one given, in every node, or by number") {
    CHECK(topology_of(3, "").ring() == std::vector<int>{0, 1, 2});
    CHECK(topology_of(3, "", 2, R"(, "ring": [0, 2, 1])").ring() == std::vector<int>{0, 2, 1, 3, 5, 4});
    CHECK_THAT(building(3, "", 1, R"(, "ring": [0, 1])"), Contains("/ring: must name each GPU"));
    CHECK_THAT(building(3, "", 1, R"(, "ring": [0, 1, 1])"), Contains("/ring: must name each GPU"));
    CHECK_THAT(building(3, "", 1, R"(, "ring": [0, 1, 3])"), Contains("/ring/2: is 3"));
}

TEST_CASE("mistakes in a fabric are errors with their place") {
    const std::string mesh = group("full_mesh");
    CHECK_THAT(building(2, mesh + "," + mesh),
               Contains("small.json: /fabric/1: gives the link gpu0->gpu1 twice"));
    CHECK_THAT(building(2, group("links", R"(, "pairs": [[1, 1]])")),
               Contains("/fabric/0: joins gpu1 to itself"));
    CHECK_THAT(building(2, group("links", R"(, "pairs": [[0, 2]])")), Contains("/fabric/0/pairs: has [0,2]"));
    CHECK_THAT(building(2, group("links", R"(, "pairs": [[0]])")), Contains("/fabric/0/pairs: has [0]"));
    CHECK_THAT(building(2, group("links", R"(, "pairs": [[0, -1]])")),
               Contains("/fabric/0/pairs: has [0,-1]"));
    CHECK_THAT(building(2, group("links", R"(, "pairs": null)")), Contains("/fabric/0/pairs"));
    CHECK_THAT(building(2, group("links", R"(, "pairs": {"a": [0, 1]})")), Contains("/fabric/0/pairs"));
    CHECK_THAT(building(2, group("links")), Contains("/fabric/0/pairs: is missing"));
    CHECK_THAT(building(4, group("torus", R"(, "dims": [2, 3])")),
               Contains("/fabric/0/dims: must multiply to"));
    CHECK_THAT(building(4, group("torus", R"(, "dims": [4096, 4096, 4096, 4096, 4096, 4096])")),
               Contains("/fabric/0/dims: must multiply to"));
    CHECK_THAT(building(4, group("torus")), Contains("/fabric/0/dims: is missing"));
    CHECK_THAT(building(4, group("full_mess")), Contains("did you mean 'full_mesh'"));
    CHECK_THAT(building(4, group("switch")), Contains("/fabric/0/name: is missing"));
    CHECK_THAT(building(2, group("full_mesh", "", -1)), Contains("/fabric/0/bandwidth_GBps/value: is -1"));
    CHECK_THAT(building(2, group("full_mesh", R"(, "colour": 1)")),
               Contains("/fabric/0/colour: is an unknown key"));
    CHECK_THAT(building(0, ""), Contains("/gpus_per_node: is 0"));
    CHECK_THAT(building(4096, "", 33), Contains("/nodes: gives 135168 GPUs"));
    CHECK_THAT(building(2, "", 1, R"(, "colour": 1)"), Contains("/colour: is an unknown key"));
}

TEST_CASE("a topology file names a device file that must be there") {
    const TemporaryFolder folder;
    const auto devices = source_folder / "configs" / "devices";
    std::ofstream(folder / "t.json")
        << R"({"schema": 1, "name": "t", "description": "", "device": "mi300y.json",
                                            "nodes": 1, "gpus_per_node": 1, "fabric": []})";
    CHECK_THAT(
        error_of([&] { read_machine_files(read_config_file(folder / "t.json", "topology"), devices); }),
        Contains("t.json: /device: is 'mi300y.json'") && Contains("did you mean 'mi300x.json'"));
}

}  // namespace overlap::test::topology_test
