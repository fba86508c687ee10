// Generators of networks between nodes: which links there are, how far a route goes, how routes spread.
#include <catch2/catch.hpp>
#include <map>

#include "sim/topology/topology.hpp"
#include "tests/test_support.hpp"

namespace overlap::test::network_test {

using Catch::Contains;

namespace {

/// ", "key": value" with a source.
std::string sourced(const std::string& key, double value) {
    return ", \"" + key + R"(": {"value": )" + std::to_string(value) + R"(, "source": "test"})";
}

std::string fat_tree(const std::string& leaves, int leaf_ports, int spines) {
    return group("fat_tree",
                 R"(, "leaves": ")" + leaves + R"(", "leaf_ports": )" + std::to_string(leaf_ports) +
                     R"(, "spines": )" + std::to_string(spines) + sourced("spine_GBps", 20) +
                     sourced("hop_latency_us", 0.6),
                 10, 4);
}

std::string dragonfly(int router_ports, int group_routers, int global_links) {
    return group("dragonfly",
                 R"(, "router_ports": )" + std::to_string(router_ports) + R"(, "group_routers": )" +
                     std::to_string(group_routers) + R"(, "global_links": )" + std::to_string(global_links) +
                     sourced("local_GBps", 20) + sourced("global_GBps", 5) + sourced("hop_latency_us", 0.5),
                 10, 4);
}

std::string node_torus(const std::string& dims) {
    return group("node_torus",
                 R"(, "dims": )" + dims + sourced("link_GBps", 5) + sourced("hop_latency_us", 0.5), 10, 4);
}

std::string route_text(const Topology& topology, int src, int dst) {
    const Route route = topology.route(src, dst);
    std::string text;
    for (const std::size_t link : route.links) text += topology.links()[link].name + " ";
    return text;
}

/// By link name, how many of the routes between all pairs cross it; links whose ends
/// both have `part` in their names.
std::map<std::string, int> loads(const Topology& topology, const std::string& from, const std::string& to) {
    std::map<std::string, int> result;
    for (const Link& link : topology.links())
        if (link.name.starts_with(from) && link.name.find("->" + to) != std::string::npos)
            result[link.name] = 0;
    for (int src = 0; src < topology.gpus(); ++src)
        for (int dst = 0; dst < topology.gpus(); ++dst)
            for (const std::size_t id : topology.route(src, dst).links)
                if (const auto found = result.find(topology.links()[id].name); found != result.end())
                    ++found->second;
    return result;
}

void check_all(const std::map<std::string, int>& load, std::size_t links, int routes) {
    CHECK(load.size() == links);
    for (const auto& [name, crossing] : load) {
        INFO(name);
        CHECK(crossing == routes);
    }
}

std::string building(int gpus, const std::string& groups, int nodes) {
    return error_of([&] { topology_of(gpus, groups, nodes); });
}

}  // namespace

TEST_CASE("fat tree: four links under a leaf, six over a spine, uplinks equally loaded") {
    // 8 NICs on 2 leaves of 4, 2 spines.
    const Topology tree = topology_of(2, fat_tree("nodes", 4, 2), 4);
    CHECK(tree.links().size() == 2 * (2 * 8 + 2 * 2));  // NICs and their ports, leaf to spine; both ways
    CHECK(route_text(tree, 0, 3) == "gpu0->nic0 nic0->leaf0 leaf0->nic3 nic3->gpu3 ");
    CHECK(route_text(tree, 0, 5) ==
          "gpu0->nic0 nic0->leaf0 leaf0->spine1 spine1->leaf1 leaf1->nic5 nic5->gpu5 ");
    CHECK(to_microseconds(tree.route(0, 3).latency) == Approx(4));
    CHECK(to_microseconds(tree.route(0, 5).latency) == Approx(5.2));  // two hops of 0.6 more
    CHECK(tree.route(0, 5).through_nic);
    // Of 4 sources to 4 destinations under the other leaf, 16 routes, each of 2 uplinks takes 8; so down.
    check_all(loads(tree, "leaf", "spine"), 4, 8);
    check_all(loads(tree, "spine", "leaf"), 4, 8);
    // Bisection: 2 · 20 GB/s up from 4 NICs of 10 GB/s, so the leaves are not oversubscribed.
    double up = 0;
    for (const Link& link : tree.links())
        if (link.name.starts_with("leaf0->spine")) up += link.bandwidth.si();
    CHECK(up == Approx(4 * 10e9));
}

TEST_CASE("fat tree: all routes to a GPU come down from one spine, more spines than ports are all used") {
    const Topology tree = topology_of(1, fat_tree("nodes", 2, 4), 8);  // 4 leaves of 2, 4 spines
    for (int dst = 0; dst < 8; ++dst) {
        std::map<std::string, int> down;
        for (int src = 0; src < 8; ++src)
            if (const Route route = tree.route(src, dst); route.links.size() == 6)
                ++down[tree.links()[route.links[3]].name];
        CHECK(down.size() == 1);
    }
    // 2 sources to 6 destinations elsewhere: 12 routes over 4 uplinks; own leaf's spines
    // 2 sources · 1, the others 2 · 2.
    for (const auto& [name, crossing] : loads(tree, "leaf0", "spine"))
        CHECK(crossing == (name == "leaf0->spine0" || name == "leaf0->spine1" ? 2 : 4));
}

TEST_CASE("rails with a spine: NIC i of neighbouring nodes is under one leaf") {
    // 4 nodes of 2; rail 0 has leaves 0 and 1 of two nodes each, rail 1 leaves 2 and 3.
    const Topology rails = topology_of(2, group("full_mesh") + "," + fat_tree("rails", 2, 2), 4);
    CHECK(route_text(rails, 0, 2) == "gpu0->nic0 nic0->leaf0 leaf0->nic2 nic2->gpu2 ");
    CHECK(route_text(rails, 1, 7) ==
          "gpu1->nic1 nic1->leaf2 leaf2->spine1 spine1->leaf3 leaf3->nic7 nic7->gpu7 ");
    // To the other rail under one leaf's nodes: a hop in the node is shorter than the spine; further away
    // both go over the spine, which alone is shorter.
    CHECK(route_text(rails, 0, 3) == "gpu0->nic0 nic0->leaf0 leaf0->nic2 nic2->gpu2 gpu2->gpu3 ");
    CHECK(rails.route(0, 5).links.size() == 6);
    CHECK(route_text(rails, 0, 1) == "gpu0->gpu1 ");
    // From a leaf's 2 NICs to the 2 others of its rail 4 routes, and to 2 of the other rail 4 more, over 2.
    check_all(loads(rails, "leaf", "spine"), 8, 4);
}

TEST_CASE("without a fabric of its own a node uses its NICs") {
    const Topology tree = topology_of(2, fat_tree("nodes", 4, 1), 2);
    CHECK(route_text(tree, 0, 1) == "gpu0->nic0 nic0->leaf0 leaf0->nic1 nic1->gpu1 ");
    CHECK(tree.has_network());
    CHECK_FALSE(topology_of(2, group("full_mesh")).has_network());
}

TEST_CASE("dragonfly: at most local, global, local, and all links of a kind equally loaded") {
    // 3 groups of 2 routers with 1 NIC and 1 global link each: every two groups have one link.
    const Topology three = topology_of(1, dragonfly(1, 2, 1), 6);
    CHECK(three.links().size() == 2 * (2 * 6 + 3 * 1 + 3));  // ports, 3 local links, 3 global ones; both ways
    CHECK(route_text(three, 0, 1) == "gpu0->nic0 nic0->router0 router0->router1 router1->nic1 nic1->gpu1 ");
    // Port 0 of group 0, on router 0, leads to group 1, whose port 1 (group 1 + 1 + 1
    // mod 2 = group 0) is on router 3.
    CHECK(route_text(three, 1, 2) ==
          "gpu1->nic1 nic1->router1 router1->router0 router0->router3 router3->router2 router2->nic2 "
          "nic2->gpu2 ");
    CHECK(three.route(0, 3).links.size() == 5);
    CHECK(to_microseconds(three.route(1, 2).latency) == Approx(4 + 3 * 0.5));
    // 2 · 2 pairs from group to group cross the one link between them.
    CHECK(loads(three, "router0", "router3").at("router0->router3") == 4);

    // 2 groups of 2 routers with 2 NICs and a global link each: router i to router i, 4 · 4 routes over 2
    // links. Half of them start on the other router, and half end on it: 8 · 1/2 + 8 · 1/2 on a local link
    // and the 2 · 2 of its own group.
    const Topology two = topology_of(2, dragonfly(2, 2, 1), 4);
    const auto load = loads(two, "router", "router");
    CHECK(load.size() == 8);
    CHECK(load.at("router0->router2") == 8);
    CHECK(load.at("router3->router1") == 8);
    CHECK(load.at("router0->router1") == 4 + 4 + 4);
    CHECK(load.at("router3->router2") == 4 + 4 + 4);
}

TEST_CASE("a network is like itself after its period") {
    // The period in nodes: every node; a leaf of 4 NICs; a group of 2 * 2 NICs; two steps along a dimension of 4.
    const std::vector<std::pair<Topology, int>> networks{
        {topology_of(2, group("full_mesh") + ", " + group("rails", "", 10, 4), 4), 1},
        {topology_of(2, fat_tree("nodes", 4, 2), 8), 2},
        {topology_of(2, fat_tree("rails", 2, 2), 8), 2},
        {topology_of(2, dragonfly(2, 2, 1), 6), 2},
        {topology_of(1, node_torus("[2, 4]"), 8), 4},
        {topology_of(1, node_torus("[2, 3]"), 6), 2}};
    for (const auto& [network, period] : networks) {
        INFO(network.links().back().name);
        CHECK(network.period() == period);
        const int turn = period * network.gpus_per_node();
        std::map<std::size_t, std::size_t> there, back;
        for (int src = 0; src < network.gpus(); ++src)
            for (int dst = 0; dst < network.gpus(); ++dst) {
                if (src == dst) continue;
                const LinkIds links = network.route(src, dst).links;
                const LinkIds turned =
                    network.route((src + turn) % network.gpus(), (dst + turn) % network.gpus()).links;
                REQUIRE(links.size() == turned.size());
                for (std::size_t i = 0; i < links.size(); ++i) {
                    CHECK(there.try_emplace(links[i], turned[i]).first->second == turned[i]);
                    CHECK(back.try_emplace(turned[i], links[i]).first->second == links[i]);
                }
            }
    }
}

TEST_CASE("a smaller machine of the same kind has few nodes, and all kinds of routes") {
    CHECK(topology_of(4, group("full_mesh")).smaller() == Json::object());
    CHECK(topology_of(2, fat_tree("nodes", 4, 2), 8).smaller() == Json{{"topology.nodes", 8}});
    // Leaves of 3 nodes, of 12 nodes, and of a NIC of each of 16.
    CHECK(topology_of(2, fat_tree("nodes", 6, 3), 48).smaller() ==
          Json{{"topology.nodes", 8}, {"topology.fabric.0.leaf_ports", 4}, {"topology.fabric.0.spines", 2}});
    CHECK(topology_of(2, fat_tree("nodes", 24, 12), 48).smaller() ==
          Json{{"topology.nodes", 8}, {"topology.fabric.0.leaf_ports", 4}, {"topology.fabric.0.spines", 2}});
    CHECK(topology_of(2, fat_tree("rails", 16, 16), 48).smaller() ==
          Json{{"topology.nodes", 8}, {"topology.fabric.0.leaf_ports", 2}, {"topology.fabric.0.spines", 2}});
    const auto smaller = [](int per_node, int ports, int routers, int links, int nodes) {
        const Topology large = topology_of(per_node, dragonfly(ports, routers, links), nodes);
        const Json what_ifs = large.smaller();
        const Topology small = topology_of(per_node,
                                           dragonfly(ports, what_ifs["topology.fabric.0.group_routers"],
                                                     what_ifs["topology.fabric.0.global_links"]),
                                           what_ifs["topology.nodes"]);
        CHECK(small.nodes() >= 8);
        CHECK(small.nodes() / small.period() >= 5);  // groups
        return what_ifs;
    };
    // 17 groups of 4 routers with a node each, one link between two groups: 5 groups of 2 nodes.
    CHECK(smaller(2, 2, 4, 4, 68) == Json{{"topology.nodes", 10},
                                          {"topology.fabric.0.group_routers", 2},
                                          {"topology.fabric.0.global_links", 2}});
    // 9 groups of 4 routers, two to a node, two links between groups: 9 groups of one node.
    CHECK(smaller(4, 2, 4, 4, 18) == Json{{"topology.nodes", 9},
                                          {"topology.fabric.0.group_routers", 2},
                                          {"topology.fabric.0.global_links", 8}});
}

TEST_CASE("node torus: the short way in each dimension, links of a ring equally loaded") {
    const Topology ring = topology_of(1, node_torus("[4]"), 4);
    CHECK(ring.links().size() == 2 * (2 * 4 + 4));
    CHECK(route_text(ring, 0, 3) == "gpu0->nic0 nic0->router0 router0->router3 router3->nic3 nic3->gpu3 ");
    CHECK(ring.route(0, 2).links.size() == 6);
    // Each place reaches two others in one step and one in two: 4 · 4 steps over 8 directed links.
    check_all(loads(ring, "router", "router"), 8, 2);

    const Topology torus = topology_of(2, group("full_mesh") + "," + node_torus("[4, 2]"), 8);
    CHECK(torus.links().size() == 2 * (8 * 1 + 2 * 16 + 8 + 4));  // node, ports, rings of 4, rungs
    CHECK(torus.route(0, 14).links.size() == 4 + 2);              // node 7 is at (3, 1)
    CHECK(torus.route(0, 12).links.size() == 4 + 3);              // node 6 at (2, 1)
    CHECK(route_text(torus, 2, 3) == "gpu2->gpu3 ");
    // Bisection of a ring of 8 with one GPU a node: 4 · 4 routes from half to half over the 2 links cut.
    const Topology eight = topology_of(1, node_torus("[8]"), 8);
    const auto load = loads(eight, "router", "router");
    CHECK(load.at("router3->router4") + load.at("router0->router7") == 16);
    CHECK(load.at("router3->router4") == 8);
    // Along 1 nothing is joined; along 2 there is one link.
    CHECK(topology_of(1, node_torus("[1, 2]"), 2).links().size() == 2 * (2 * 2 + 1));
}

TEST_CASE("mistakes in a network are errors with their place") {
    CHECK_THAT(building(2, fat_tree("nodes", 3, 2), 4),
               Contains("small.json: /fabric/0/leaf_ports: is 3, must divide the 8 NICs"));
    CHECK_THAT(building(2, fat_tree("rails", 3, 2), 4), Contains("must divide the 4 NICs of a rail"));
    CHECK_THAT(building(2, fat_tree("rail", 2, 2), 4), Contains("/fabric/0/leaves: is 'rail'"));
    CHECK_THAT(building(2, fat_tree("rails", 2, 0), 4), Contains("/fabric/0/spines: is 0"));
    CHECK_THAT(building(2, group("fat_tree"), 4), Contains("/fabric/0/leaves: is missing"));
    CHECK_THAT(building(2, dragonfly(3, 1, 1), 4),
               Contains("/fabric/0/group_routers: gives groups of 3 NICs, but 2 or more whole groups"));
    CHECK_THAT(building(2, dragonfly(4, 2, 1), 4), Contains("/fabric/0/group_routers: gives groups of 8"));
    CHECK_THAT(building(2, dragonfly(2, 2, 2), 4),
               Contains("/fabric/0/global_links: is 2, expected a whole number from 1 to 1"));
    CHECK_THAT(building(1, dragonfly(1, 2, 1), 8),
               Contains("/fabric/0/global_links: gives a group 2 links, which must be dealt evenly to 3"));
    CHECK_THAT(building(1, node_torus("[3, 2]"), 8), Contains("/fabric/0/dims: must multiply to nodes, 8"));
    CHECK_THAT(building(1, node_torus("[16]"), 8), Contains("/fabric/0/dims/0: is 16"));
    CHECK_THAT(building(2, group("rails") + "," + fat_tree("nodes", 8, 1), 4),
               Contains("/fabric/1/type: is a second network between nodes"));
    CHECK_THAT(building(2, group("fat_trees"), 4), Contains("did you mean 'fat_tree'"));
    CHECK_THAT(building(1, group("node_torus", R"(, "dims": [2])"), 2),
               Contains("/fabric/0/link_GBps: is missing"));
}

}  // namespace overlap::test::network_test
