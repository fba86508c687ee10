// Rates of tasks that run together, at one instant.
#include "sim/engine/fair_share.hpp"

#include <catch2/catch.hpp>
#include <random>

#include "tests/test_support.hpp"

using namespace overlap;
using namespace overlap::test;

namespace {

/// Two GPUs: compute units 0 and 1 of 100 units each, link 10 GB/s either way.
const ResourceTable& pair() {
    static const ResourceTable table(topology_of(2, group("full_mesh")));
    return table;
}
const FairShare::Index a = static_cast<FairShare::Index>(pair().compute_units(0));
const FairShare::Index b = static_cast<FairShare::Index>(pair().compute_units(1));

Cost cost(std::initializer_list<Demand> demands, double body = 0) {
    Cost result;
    result.demands = demands;
    result.body = Seconds(body);
    return result;
}

struct Running {
    std::vector<Cost> costs;
    FairShare shares;
    explicit Running(std::vector<Cost> given) : costs(std::move(given)), shares(costs, pair()) {
        for (FairShare::Index i = 0; i < costs.size(); ++i) shares.start(i);
        shares.resolve();
    }
};

}  // namespace

TEST_CASE("equal shares of a resource, whatever the tasks have to do") {
    // 100 units: 50 each. The first has 100 unit-seconds to do, 0.5 of it a second; the second 200, 0.25.
    const Running two({cost({{a, 100}}), cost({{a, 200}})});
    CHECK(two.shares.rate(0) == Approx(0.5));
    CHECK(two.shares.rate(1) == Approx(0.25));
}

TEST_CASE("what a task cannot use goes to the others") {
    // The first draws at most 100/10 = 10 units; the other two share 90: 45 each, of 45 unit-seconds: rate 1.
    const Running three({cost({{a, 100}}, 10), cost({{a, 45}}), cost({{a, 45}})});
    CHECK(three.shares.rate(0) == Approx(0.1));
    CHECK(three.shares.rate(1) == Approx(1.0));
    CHECK(three.shares.rate(2) == Approx(1.0));
}

TEST_CASE("two resources that saturate together") {
    // x uses a (1 a unit of work) and b (1), y only a, z only b, w only b. On b: x, z, w share 100: 100/3
    // each. On a: x takes 100/3, y the rest, 200/3: more than x, and x has its bottleneck on b.
    const Running four({cost({{a, 1}, {b, 1}}), cost({{a, 1}}), cost({{b, 1}}), cost({{b, 1}})});
    CHECK(four.shares.rate(0) == Approx(100.0 / 3));
    CHECK(four.shares.rate(1) == Approx(200.0 / 3));
    CHECK(four.shares.rate(2) == Approx(100.0 / 3));
    CHECK(four.shares.rate(3) == Approx(100.0 / 3));
}

TEST_CASE("a task held back on one resource still gets its fair share of another") {
    // y and z share a (100); y also uses b, 100 units, where nine others draw at most 0.1 each. b never
    // saturates at 50 + 0.9, so y and z get 50 each. (SimGrid's fair bottleneck gives y less: it first deals
    // b out by tenths.)
    std::vector<Cost> costs{cost({{a, 1}, {b, 1}}), cost({{a, 1}})};
    for (int i = 0; i < 9; ++i) costs.push_back(cost({{b, 1}}, 10));
    const Running eleven(std::move(costs));
    CHECK(eleven.shares.rate(0) == Approx(50));
    CHECK(eleven.shares.rate(1) == Approx(50));
    CHECK(eleven.shares.rate(2) == Approx(0.1));
}

TEST_CASE("thousands of equal flows get equal shares") {
    const Running many(std::vector<Cost>(5000, cost({{a, 1}})));
    for (FairShare::Index i = 0; i < 5000; ++i) REQUIRE(many.shares.rate(i) == Approx(100.0 / 5000));
}

TEST_CASE("held units are taken from the others and given back") {
    Running one({cost({{a, 100}})});
    CHECK(one.shares.rate(0) == Approx(1.0));
    one.shares.hold(a, 25);
    CHECK(one.shares.resolve().size() == 1);
    CHECK(one.shares.rate(0) == Approx(0.75));
    one.shares.hold(a, -25);
    one.shares.resolve();
    CHECK(one.shares.rate(0) == Approx(1.0));
}

TEST_CASE("only tasks that a change reaches are solved again") {
    Running both({cost({{a, 100}}), cost({{b, 100}})});
    both.shares.hold(a, 50);
    const auto changed = both.shares.resolve();
    REQUIRE(changed.size() == 1);
    CHECK(changed[0] == 0);
}

TEST_CASE("any allocation keeps capacities, and every task is at its top rate or has a bottleneck") {
    const Topology mesh = topology_of(4, group("full_mesh"));
    const ResourceTable resources(mesh);
    int instances = 0, bound = 0;
    for (unsigned seed = 0; seed < 2000; ++seed) {
        std::mt19937 random(seed);
        const auto below = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
        std::vector<Cost> costs(2 + below(30));
        for (Cost& task : costs) {
            const unsigned demands = 1 + below(5);
            for (unsigned d = 0; d < demands; ++d) {
                const ResourceId id = below(static_cast<unsigned>(resources.size()));
                task.demands.push_back({id, resources[id].capacity * (0.05 + 0.01 * below(200))});
            }
            task.body = Seconds(0.01 * below(300));
        }
        FairShare shares(costs, resources);
        for (FairShare::Index i = 0; i < costs.size(); ++i) shares.start(i);
        shares.resolve();

        std::vector<std::vector<double>> share(resources.size(), std::vector<double>(costs.size()));
        std::vector<double> used(resources.size());
        for (FairShare::Index i = 0; i < costs.size(); ++i)
            for (const Demand& demand : costs[i].demands) {
                share[demand.resource][i] += demand.amount * shares.rate(i);
                used[demand.resource] += demand.amount * shares.rate(i);
            }
        INFO("seed " << seed);
        for (ResourceId id = 0; id < resources.size(); ++id)
            REQUIRE(used[id] <= resources[id].capacity * (1 + 1e-9));
        for (FairShare::Index i = 0; i < costs.size(); ++i) {
            REQUIRE(shares.rate(i) > 0);
            // A task may name a resource twice: its demands on it add up.
            double slowest = costs[i].body.si();
            for (const Demand& demand : costs[i].demands)
                slowest = std::max(slowest, share[demand.resource][i] / shares.rate(i) /
                                                resources[demand.resource].capacity);
            if (shares.rate(i) * slowest >= 1 - 1e-9) continue;
            bool has_bottleneck = false;
            for (const Demand& demand : costs[i].demands) {
                const auto& on = share[demand.resource];
                const bool saturated =
                    used[demand.resource] >= resources[demand.resource].capacity * (1 - 1e-9);
                const double largest = *std::max_element(on.begin(), on.end());
                has_bottleneck = has_bottleneck || (saturated && on[i] >= largest * (1 - 1e-9));
            }
            REQUIRE(has_bottleneck);
            ++bound;
        }
        ++instances;
    }
    CHECK(instances == 2000);
    CHECK(bound > 10000);  // the law about bottlenecks has been put to the test
}
