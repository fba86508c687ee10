// Rates of tasks that run together, at one instant.
#include "sim/engine/fair_share.hpp"

#include <catch2/catch.hpp>
#include <numeric>
#include <random>

#include "tests/allocation_laws.hpp"
#include "tests/test_support.hpp"

namespace overlap::test::fair_share_test {
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

/// A task of no time that may take these units of a resource.
Cost holding(std::initializer_list<Hold> holds) {
    Cost result;
    for (const Hold& hold : holds) result.holds.push_back(hold);
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

TEST_CASE("levels that follow each other end where both resources are full") {
    // The first is limited by a, the second by b. 100 x + 10 y = 100 and 20 x + 100 y = 100: x = 90/98, y = 80/98.
    const Running two({cost({{a, 100}, {b, 20}}), cost({{a, 10}, {b, 100}})});
    CHECK(two.shares.rate(0) == Approx(90.0 / 98).epsilon(1e-13));
    CHECK(two.shares.rate(1) == Approx(80.0 / 98).epsilon(1e-13));
}

TEST_CASE("tasks below an even share run at their top rate, and leave nothing behind when they stop") {
    // The last two draw 3.7 units each, less than an even share of 100/3. The first can use all others.
    Running three({cost({{a, 100}}), cost({{a, 0.37}}, 0.1), cost({{a, 0.37}}, 0.1)});
    CHECK(three.shares.rate(0) == Approx(0.926));
    CHECK(three.shares.rate(1) == 10);
    for (const FairShare::Index stopped : {1U, 2U}) {
        three.shares.stop(stopped);
        three.shares.resolve();
    }
    CHECK(three.shares.rate(0) == 1);
    CHECK(three.shares.rate(1) == 0);
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
    Running one({cost({{a, 100}}), holding({{a, 25}})});
    CHECK(one.shares.rate(0) == Approx(1.0));
    one.shares.hold({a, 25});
    CHECK(one.shares.resolve().size() == 1);
    CHECK(one.shares.rate(0) == Approx(0.75));
    one.shares.give_back({a, 25});
    one.shares.resolve();
    CHECK(one.shares.rate(0) == Approx(1.0));
}

TEST_CASE("holds that do not add up count by their largest") {
    Running one({cost({{a, 100}}), holding({{a, 10, false}}), holding({{a, 30, false}}), holding({{a, 20}})});
    const auto rate = [&] {
        one.shares.resolve();
        return one.shares.rate(0);
    };
    one.shares.hold({a, 10, false});
    CHECK(rate() == Approx(0.9));
    one.shares.hold({a, 30, false});
    CHECK(rate() == Approx(0.7));
    one.shares.hold({a, 20});  // adds up with the largest of the others
    CHECK(rate() == Approx(0.5));
    one.shares.give_back({a, 30, false});
    CHECK(rate() == Approx(0.7));
}

TEST_CASE("shares go with the weights") {
    // 100 units, weights 3 and 1: 75 and 25.
    const Running two({cost({{a, 100, 3}}), cost({{a, 100, 1}})});
    CHECK(two.shares.rate(0) == Approx(0.75));
    CHECK(two.shares.rate(1) == Approx(0.25));
    // The first draws 60 at most, less than its 75; the rest, 40, goes by 1 to 3.
    const Running three({cost({{a, 60, 12}}, 1), cost({{a, 100, 1}}), cost({{a, 100, 3}})});
    CHECK(three.shares.rate(0) == Approx(1));
    CHECK(three.shares.rate(1) == Approx(0.1));
    CHECK(three.shares.rate(2) == Approx(0.3));
}

TEST_CASE("a resource that limits each user is not shared") {
    const FairShare::Index clock = static_cast<FairShare::Index>(pair().clock(0));
    Running two({cost({{clock, 2}}, 2), cost({{clock, 4}}, 4), holding({{clock, 0.2, false}})});
    CHECK(two.shares.rate(0) == Approx(0.5));
    CHECK(two.shares.rate(1) == Approx(0.25));
    two.shares.hold({clock, 0.2, false});
    two.shares.resolve();
    CHECK(two.shares.rate(0) == Approx(0.4));  // each at 80 % of its top rate
    CHECK(two.shares.rate(1) == Approx(0.2));
}

TEST_CASE("tasks that claim the same single unit draw one at a time, whatever their streams") {
    std::vector<Cost> costs{cost({{a, 100}}, 1), cost({{a, 100}}, 1)};
    const std::vector<std::uint32_t> streams{0, 1};
    const auto can_saturate = [&] { return FairShare(costs, pair(), streams).can_saturate(); };
    CHECK(can_saturate());
    costs[0].claim = Claim{pair().dma_engine(0, 1)};
    CHECK(can_saturate());
    costs[1].claim = costs[0].claim;
    CHECK(!can_saturate());
}

TEST_CASE("links in series with the same users share as one link does") {
    Running two({cost({{a, 100}, {b, 100}}), cost({{a, 50}, {b, 50}}), holding({{b, 50}})});
    CHECK(two.shares.rate(0) == Approx(0.5));
    CHECK(two.shares.rate(1) == Approx(1));
    two.shares.hold({b, 50});  // narrower than the other now
    two.shares.resolve();
    CHECK(two.shares.rate(0) == Approx(0.25));
    CHECK(two.shares.rate(1) == Approx(0.5));
}

TEST_CASE("only tasks that a change reaches are solved again") {
    Running both({cost({{a, 100}}), cost({{b, 100}}), holding({{a, 50}})});
    both.shares.hold({a, 50});
    const auto changed = both.shares.resolve();
    REQUIRE(changed.size() == 1);
    CHECK(changed[0] == 0);
}

TEST_CASE("rates are the same to the bit in whatever order tasks are numbered, and start and stop") {
    const ResourceTable table(topology_of(8, group("full_mesh")));
    std::mt19937_64 random(7);
    const auto drawn = [&](int most) { return std::uniform_int_distribution(0, most - 1)(random); };
    std::size_t shared = 0;
    for (int round = 0; round < 200; ++round) {
        std::vector<Cost> costs;
        for (int i = 0; i < 60; ++i) {
            const int from = drawn(8), to = (from + 1 + drawn(7)) % 8;
            const double amount = 1e9 * (1 + drawn(3)) / 3;
            Cost one = cost({{table.hbm(from), amount},
                             {table.hbm(to), amount},
                             {table.compute_units(from), 0.7 * drawn(40)},
                             {table.compute_units(to), 0.3 * drawn(40)}},
                            1e-3 * drawn(3));
            // Two of few links, so that their levels depend on each other.
            one.demands.push_back({table.link(static_cast<std::size_t>(drawn(3))), amount});
            one.demands.push_back({table.link(static_cast<std::size_t>(3 + drawn(3))), amount});
            costs.push_back(std::move(one));
        }
        std::vector<std::size_t> order(costs.size());
        std::iota(order.begin(), order.end(), 0U);
        const auto rates = [&] {
            std::vector<Cost> numbered;
            for (const std::size_t task : order) numbered.push_back(costs[task]);
            FairShare shares(numbered, table);
            const auto change = [&](auto what, std::size_t first, std::size_t last) {
                std::vector<FairShare::Index> ids;
                for (FairShare::Index id = 0; id < order.size(); ++id)
                    if (order[id] >= first && order[id] < last) ids.push_back(id);
                std::shuffle(ids.begin(), ids.end(), random);
                for (const FairShare::Index id : ids) (shares.*what)(id);
                shares.resolve();
            };
            std::vector<double> result;
            const auto read = [&] {
                const std::size_t before = result.size();
                result.resize(before + order.size());
                for (FairShare::Index id = 0; id < order.size(); ++id)
                    result[before + order[id]] = shares.rate(id);
            };
            change(&FairShare::start, 0, 40);
            read();
            change(&FairShare::start, 40, 60);
            read();
            change(&FairShare::stop, 10, 25);
            read();
            return result;
        };
        const std::vector<double> first = rates();
        for (const double rate : first) shared += rate > 0 && rate < 1e3;
        for (int again = 0; again < 3; ++again) {
            std::shuffle(order.begin(), order.end(), random);
            REQUIRE(rates() == first);
        }
    }
    CHECK(shared > 10000);
}

TEST_CASE("any allocation keeps capacities, and every task is at its top rate or has a bottleneck") {
    const Topology mesh = topology_of(4, group("full_mesh"));
    const ResourceTable resources(mesh);
    int instances = 0, bound = 0;
    for (unsigned seed = 0; seed < 2000; ++seed) {
        std::mt19937 random(seed);
        const auto below = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
        std::vector<Cost> costs(2 + below(30));
        for (std::size_t i = 0; i < costs.size(); ++i) {
            const unsigned demands = 1 + below(5);
            for (unsigned d = 0; d < demands; ++d) {
                const ResourceId id = below(static_cast<unsigned>(resources.size()));
                // Half of the instances with weights; a task that names a
                // resource twice has one weight on it.
                const double weight = seed % 2 == 0 ? 1 : 0.5 + 0.75 * static_cast<double>((i + id) % 4);
                costs[i].demands.push_back({id, resources[id].capacity * (0.05 + 0.01 * below(200)), weight});
            }
            costs[i].body = Seconds(0.01 * below(300));
        }
        FairShare shares(costs, resources);
        for (FairShare::Index i = 0; i < costs.size(); ++i) shares.start(i);
        shares.resolve();

        std::vector<double> rates;
        for (FairShare::Index i = 0; i < costs.size(); ++i) rates.push_back(shares.rate(i));
        std::vector<double> capacities;
        for (ResourceId id = 0; id < resources.size(); ++id) capacities.push_back(resources[id].capacity);
        INFO("seed " << seed);
        bound += check_allocation(costs, rates, capacities, resources);
        ++instances;
    }
    CHECK(instances == 2000);
    CHECK(bound > 10000);  // the law about bottlenecks has been put to the test
}

}  // namespace overlap::test::fair_share_test
