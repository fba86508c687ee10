// Laws of every shipped topology.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <numeric>

#include "models/resources.hpp"
#include "tests/test_support.hpp"

namespace overlap::test::topology_laws_test {
namespace {

/// Calls `law` for every shipped topology of at most 1,024 GPUs (larger ones are of the same kinds); returns how many.
template <class Law>
int for_every_topology(Law&& law) {
    int count = 0;
    for (const std::string& name : shipped.names("topologies")) {
        INFO(name);
        const Topology topology = shipped.topology(name);
        CHECK(topology.name() == name);
        if (topology.gpus() > 1024) continue;
        law(topology);
        ++count;
    }
    return count;
}

}  // namespace

TEST_CASE("every link of every shipped topology can carry something, and has a link back that is as fast") {
    const int count = for_every_topology([](const Topology& topology) {
        CHECK(topology.links().empty() == (topology.gpus() == 1));
        std::map<std::string, BytesPerSecond> bandwidth;
        for (const Link& link : topology.links()) bandwidth[link.name] = link.bandwidth;
        REQUIRE(bandwidth.size() == topology.links().size());
        for (const Link& link : topology.links()) {
            REQUIRE(link.bandwidth > BytesPerSecond(0));
            REQUIRE(link.latency >= Seconds());
            const std::size_t arrow = link.name.find("->");
            const std::string back = link.name.substr(arrow + 2) + "->" + link.name.substr(0, arrow);
            REQUIRE(bandwidth.contains(back));
            REQUIRE(bandwidth.at(back) == link.bandwidth);
        }
    });
    CHECK(count >= 17);
}

TEST_CASE("every pair of GPUs of every shipped topology has a route whose links follow one another") {
    const int count = for_every_topology([](const Topology& topology) {
        // Every pair up to 64 GPUs; beyond, steps that meet every place in a node and nodes near and far.
        const int step = topology.gpus() > 64 ? 13 : 1;
        for (int src = 0; src < topology.gpus(); src += step) {
            for (int dst = 0; dst < topology.gpus(); dst += step) {
                const Route route = topology.route(src, dst);
                REQUIRE(route.links.empty() == (src == dst));
                std::string at = "gpu" + std::to_string(src);
                Seconds latency;
                for (const std::size_t id : route.links) {
                    const Link& link = topology.links().at(id);
                    REQUIRE(link.id == id);
                    const std::size_t arrow = link.name.find("->");
                    REQUIRE(link.name.substr(0, arrow) == at);
                    at = link.name.substr(arrow + 2);
                    latency += link.latency;
                }
                REQUIRE(at == "gpu" + std::to_string(dst));
                REQUIRE(route.latency.si() == Approx(latency.si()));
                // As far back as forth, and by a NIC exactly where nodes differ.
                REQUIRE(topology.route(dst, src).links.size() == route.links.size());
                REQUIRE(route.through_nic == (topology.node_of(src) != topology.node_of(dst)));
            }
        }
    });
    CHECK(count >= 17);
}

TEST_CASE("the ring of every shipped topology has every rank once, node by node") {
    const int count = for_every_topology([](const Topology& topology) {
        std::vector<int> sorted = topology.ring();
        std::sort(sorted.begin(), sorted.end());
        std::vector<int> all(static_cast<std::size_t>(topology.gpus()));
        std::iota(all.begin(), all.end(), 0);
        CHECK(sorted == all);
        for (std::size_t i = 1; i < topology.ring().size(); ++i)
            CHECK(topology.node_of(topology.ring()[i - 1]) <= topology.node_of(topology.ring()[i]));
    });
    CHECK(count >= 17);
}

TEST_CASE("neighbours in a ring are direct neighbours where the machine has such a ring") {
    int checked = 0;
    for (const std::string name : {"mi250x_8", "torus_4x4", "ring_8", "mi300x_8"}) {
        const Topology topology = shipped.topology(name);
        const std::vector<int>& ring = topology.ring();
        for (std::size_t i = 0; i < ring.size(); ++i, ++checked) {
            INFO(name << ": " << ring[i] << " to " << ring[(i + 1) % ring.size()]);
            CHECK(topology.route(ring[i], ring[(i + 1) % ring.size()]).links.size() == 1);
        }
    }
    CHECK(checked == 40);  // 8 + 16 + 8 + 8
}

TEST_CASE("every resource of every shipped topology has a name of its own and a capacity") {
    const int count = for_every_topology([](const Topology& topology) {
        const ResourceTable table(topology);
        std::vector<std::string> names;
        for (ResourceId id = 0; id < table.size(); ++id) {
            REQUIRE(table[id].capacity > 0);
            names.push_back(table[id].name);
        }
        std::sort(names.begin(), names.end());
        CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
        // An engine belongs to the GPU that asks, whoever the peer is.
        for (int gpu = 0; gpu < topology.gpus(); ++gpu)
            for (int peer = 0; peer < topology.gpus(); ++peer)
                if (peer != gpu && topology.node_of(peer) == topology.node_of(gpu))
                    REQUIRE(table[table.dma_engine(gpu, peer)].gpu == gpu);
    });
    CHECK(count >= 17);
}

}  // namespace overlap::test::topology_laws_test
