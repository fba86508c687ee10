// Closed forms of GEMMs whose blocks persist, and of kernels that wait for their units.
// Every registered engine must reproduce them.
#include <catch2/catch.hpp>

#include "sim/engine/engine.hpp"
#include "tests/any_engine.hpp"
#include "tests/test_support.hpp"

using namespace overlap;
using namespace overlap::test;

namespace {

Cost lasts(double seconds) {
    Cost cost;
    cost.body = Seconds(seconds);
    return cost;
}

/// Tasks on streams of their own on a GPU of 100 compute units.
struct Case {
    ResourceTable table{topology_of(2, group("full_mesh"))};
    TaskGraph graph;
    std::vector<Cost> costs;

    void add(const Cost& cost) {
        graph.add({GemmShape{1, 1, 1}, 0, static_cast<int>(costs.size())}, {});
        costs.push_back(cost);
    }
    /// So many tiles, each of which takes a unit a second.
    Cost gemm(int tiles) const {
        const int waves = (tiles + 99) / 100;
        Cost cost = lasts(waves);
        cost.claim = Claim{table.compute_units(0), 1, std::min(tiles, 100)};
        cost.claim->tiles = tiles;
        cost.claim->waves = waves;
        return cost;
    }
    /// A kernel that needs, and keeps, so many units.
    Cost kernel(int units, double seconds) const {
        Cost cost = lasts(seconds);
        cost.claim = Claim{table.compute_units(0), units, units};
        return cost;
    }
    std::vector<double> ends() const {
        std::vector<double> result;
        for (const TaskTimes& times : make_engine(any_engine())->run(graph, costs, table, 0).tasks)
            result.push_back(times.end.si());
        return result;
    }
};

}  // namespace

TEST_CASE("a GEMM that lacks units takes longer by what these have to do") {
    // 100 units, 10 of them held for 0.5 s by a kernel that was there before.
    const auto end_of = [](int tiles, double held = 0.5) {
        Case two;
        two.add(two.kernel(10, held));
        Cost gemm = two.gemm(tiles);
        gemm.launch = Seconds(0.125);
        two.add(gemm);
        return two.ends()[1];
    };
    // One wave: blocks of their own, whichever unit is free.
    CHECK(end_of(90) == Approx(0.125 + 1));
    CHECK(end_of(100) == Approx(0.5 + 1));
    CHECK(end_of(100, 3) == Approx(0.125 + 2));  // a unit that is done takes another tile
    // Two waves: 90 units begin with two tiles each, the late ones find what is over of 200, and of 180
    // nothing.
    CHECK(end_of(200) == Approx(0.5 + 2));
    CHECK(end_of(180) == Approx(0.125 + 2));
    CHECK(end_of(200, 3) == Approx(2.125 + 2));  // late blocks take units that early ones have left
    // Four: two tiles each, then one after another. 400 - 180 - 20 are open: 90 from 2.125 s on and 90 from
    // 3.125; the late units, at 2.5, 10 more; 10 are left at 3.5.
    CHECK(end_of(400) == Approx(0.5 + 4));
    CHECK(end_of(380) == Approx(0.125 + 4));
}

TEST_CASE("a last wave of tiles leaves units as it begins") {
    Case two;
    two.add(two.gemm(250));
    two.add(two.kernel(50, 0.25));
    CHECK(two.ends() == std::vector<double>{3, 2.25});
    two.add(two.kernel(60, 0.25));  // too many
    CHECK(two.ends() == std::vector<double>{3, 2.25, 3.25});
}

TEST_CASE("thread blocks that wait for units share them") {
    // 8 blocks of 12.5 s of work for a unit: 4 units have three quarters of their rate.
    const auto end_beside = [](int held, Bytes cache_left, double in_flight) {
        Case two;
        Cost gemm = two.gemm(held);
        gemm.claim->cache_left = cache_left;
        two.add(gemm);
        Cost copy = lasts(2);
        copy.launch = Seconds(0.5);
        copy.claim = Claim{two.table.compute_units(0), 4, 8};
        copy.claim->fixed = true;
        copy.crowding = Crowding{Seconds(12), 0.75, Bytes(in_flight)};
        two.add(copy);
        return two.ends()[1];
    };
    CHECK(end_beside(92, {}, 0) == Approx(0.5 + 2));          // 8 units are there at once
    CHECK(end_beside(96, Bytes(1), 100) == Approx(0.5 + 4));  // 4 are, which have not run the GEMM
    CHECK(end_beside(97, {}, 0) == Approx(1 + 4));            // it waits for the GEMM's end
    CHECK(end_beside(97, Bytes(80), 100) == Approx(1 + 4));  // room for more than three quarters of the loads
    CHECK(end_beside(97, Bytes(50), 100) == Approx(1 + 6));  // for half of them
}
