// Closed forms of GEMMs whose blocks persist, and of kernels that wait for their units.
// Every registered engine must reproduce them.
#include <catch2/catch.hpp>

#include "sim/engine/engine.hpp"
#include "tests/any_engine.hpp"
#include "tests/test_support.hpp"

namespace overlap::test::tile_waves_test {
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
        cost.claim->parts = Tiles{tiles, waves};
        return cost;
    }
    /// A kernel that needs, and keeps, `units` units.
    Cost kernel(int units, double seconds) const {
        Cost cost = lasts(seconds);
        cost.claim = Claim{table.compute_units(0), units, units};
        return cost;
    }
    /// So many thread blocks, which together are `work` seconds of work for a unit, which has room for two,
    /// and beside a GEMM three quarters of its rate.
    Cost copy(int blocks, double work, Seconds launch, double in_flight = 0) const {
        Cost cost = lasts(work / blocks);
        cost.launch.time = launch;
        cost.claim = Claim{table.compute_units(0), 1, blocks};
        cost.claim->parts = Blocks{.count = blocks,
                                   .together = 2,
                                   .unit = Seconds(work),
                                   .beside_tiles = 0.75,
                                   .in_flight = Bytes(in_flight)};
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
        gemm.launch.time = Seconds(0.125);
        two.add(gemm);
        return two.ends()[1];
    };
    // One wave: blocks of their own, whichever unit is free.
    CHECK(end_of(90) == Approx(0.125 + 1));
    CHECK(end_of(100) == Approx(0.5 + 1));
    CHECK(end_of(100, 3) == Approx(0.125 + 2));  // a unit that is done takes another tile
    // Two waves: 90 units begin with two tiles each, the late ones find what is over of 200, of 180 those of
    // two units, and of 176 nothing.
    CHECK(end_of(200) == Approx(0.5 + 2));
    CHECK(end_of(180) == Approx(0.5 + 2));
    CHECK(end_of(180, 3) == Approx(1.125 + 2));
    CHECK(end_of(176) == Approx(0.125 + 2));
    CHECK(end_of(200, 3) == Approx(2.125 + 2));  // late blocks take units that early ones have left
    // Four: two tiles each, then one after another. 400 - 180 - 20 are open: 90 from 2.125 s on and 90 from
    // 3.125; the late units, at 2.5, 10 more; 10 are left at 3.5.
    CHECK(end_of(400) == Approx(0.5 + 4));
    CHECK(end_of(380) == Approx(0.125 + 4));
}

TEST_CASE("late units of a GEMM of two waves begin second tiles of others") {
    // 100 units, 10 of them held by a kernel until 0.5 s; the GEMM begins on 90 at 0.125 s. Then a kernel comes that
    // needs 10: when does it begin?
    const auto begin_of_next = [](int tiles, double ready, int held = 10) {
        Case three;
        three.add(three.kernel(held, 0.5));
        Cost gemm = three.gemm(tiles);
        gemm.launch.time = Seconds(0.125);
        three.add(gemm);
        Cost next = three.kernel(10, 1);
        next.launch.time = Seconds(ready);
        three.add(next);
        return three.ends()[2] - 1;
    };
    // In the first wave it waits for the wave's end, after which 40 units of 90 have no second tile.
    CHECK(begin_of_next(150, 0.625) == Approx(1.125));
    CHECK(begin_of_next(150, 1.25) == Approx(1.25));
    // One second tile stays where it is, so of 11 the late units take 10, and of 6 five.
    CHECK(begin_of_next(101, 0.625) == Approx(1.125));
    CHECK(begin_of_next(96, 0.625) == Approx(1.125));
    // A GEMM that began on less than half of its units gives no tile away, and one of three waves takes them from all.
    CHECK(begin_of_next(150, 0.625, 60) == Approx(0.625));
    CHECK(begin_of_next(250, 0.625) == Approx(2.125));
}

TEST_CASE("a last wave of tiles leaves units as it begins") {
    Case two;
    two.add(two.gemm(250));
    two.add(two.kernel(50, 0.25));
    CHECK(two.ends() == std::vector<double>{3, 2.25});
    two.add(two.kernel(60, 0.25));  // too many
    CHECK(two.ends() == std::vector<double>{3, 2.25, 3.25});
}

TEST_CASE("thread blocks that find too few units share them, with what cache a GEMM leaves") {
    // 8 blocks of 12 s of work for a unit; beside the GEMM units have three quarters of their rate.
    const auto end_beside = [](int held, Bytes cache_left, double in_flight) {
        Case two;
        Cost gemm = two.gemm(held);
        std::get<Tiles>(gemm.claim->parts).cache_left = cache_left;
        two.add(gemm);
        two.add(two.copy(8, 12, Seconds(0.5), in_flight));
        return two.ends()[1];
    };
    // 8 units are there at once: 3 s of work until the GEMM's end, then 9; or 4, which have not run the GEMM.
    CHECK(end_beside(92, {}, 0) == Approx(1 + 9.0 / 8));
    CHECK(end_beside(96, Bytes(1), 100) == Approx(1 + 10.5 / 4));
    CHECK(end_beside(100, {}, 0) == Approx(1 + 12.0 / 4));  // they wait for the GEMM's end
    CHECK(end_beside(100, Bytes(80), 100) == Approx(1 + 12 / 3.2));
    CHECK(end_beside(100, Bytes(200), 100) == Approx(1 + 12.0 / 4));
}

TEST_CASE("thread blocks are placed as units come free, and leave them one by one") {
    // 2 units for 4 of 8 blocks at once; 2 for the others half a second later, at the GEMM's end. Two blocks
    // are 3 s of work for a unit, of which the first two have done 0.375 by then.
    Case three;
    three.add(three.gemm(98));
    three.add(three.copy(8, 12, Seconds(0.5)));
    CHECK(three.ends()[1] == Approx(1 + 3));
    Cost late = three.kernel(98, 1);  // it gets the units that the first four blocks leave
    late.launch.time = Seconds(2);
    three.add(late);
    CHECK(three.ends()[2] == Approx(1 + 2.625 + 1));
    CHECK(three.ends()[1] == Approx(1 + 3));
}

TEST_CASE("many short thread blocks work on every unit that comes free until their kernel's end") {
    // 60 s of work for a unit. From 0.5 s on 2 units do three quarters of their rate; from 1 s on, when the GEMM
    // is over, all work.
    Case three;
    three.add(three.gemm(98));
    Cost copy = three.copy(100, 60, Seconds(0.5));
    auto& blocks = std::get<Blocks>(copy.claim->parts);
    blocks.together = 1;
    blocks.to_the_end = true;
    three.add(copy);
    Cost next = three.kernel(1, 1);
    next.launch.time = Seconds(0.75);
    three.add(next);
    CHECK(three.ends()[1] == Approx(1 + 59.25 / 100));
    CHECK(three.ends()[2] == Approx(1 + 59.25 / 100 + 1));  // no unit is free before
    // Units that never come are not waited for.
    Case two;
    two.add(two.kernel(98, 100));
    two.add(copy);
    CHECK(two.ends()[1] == Approx(0.5 + 60.0 / 2));
}

TEST_CASE("thread blocks are slower beside those of a sum, which take the units that a GEMM leaves") {
    Case three;
    three.add(three.gemm(80));
    // 20 units run 40 of its blocks; the 80 of the GEMM then take 0.4 s for two each.
    Cost sum = three.copy(200, 40, Seconds(0.5));
    std::get<Blocks>(sum.claim->parts).streaming = true;
    three.add(sum);
    CHECK(three.ends()[1] == Approx(1.4));
    // Both run on units that are free at once: 4 blocks do 1.2 s of 4 while the sum takes 0.6 s on its 96 units.
    Case both;
    Cost copy = both.copy(4, 4, {});
    std::get<Blocks>(copy.claim->parts).beside_streaming = 0.5;
    both.add(copy);
    Cost other = both.copy(192, 57.6, {});
    std::get<Blocks>(other.claim->parts).streaming = true;
    both.add(other);
    CHECK(both.ends()[0] == Approx(1.3));
    CHECK(both.ends()[1] == Approx(0.6));
}

TEST_CASE("a GEMM in clusters lacks the units next to blocks that came first") {
    // 20 blocks on as many units until 0.125 + 0.375 / 0.75 s, four of them on two pairs. The partners of 16 are held.
    const auto end_of = [](int tiles, int cluster) {
        Case two;
        Cost copy = two.copy(20, 10, {});
        std::get<Blocks>(copy.claim->parts).paired = 4;
        two.add(copy);
        Cost gemm = two.gemm(tiles);
        gemm.launch.time = Seconds(0.125);
        std::get<Tiles>(gemm.claim->parts).cluster = cluster;
        two.add(gemm);
        return two.ends()[1];
    };
    CHECK(end_of(65, 1) == Approx(0.125 + 1));
    CHECK(end_of(64, 2) == Approx(0.125 + 1));
    CHECK(end_of(65, 2) == Approx(0.625 + 1));  // one waits until the blocks are gone
}

TEST_CASE("blocks that find few free pairs also take their second units, which keeps fewer from clusters") {
    // 32 units are free, 16 pairs: 32 blocks fill them, and 24 leave 8 single ones. The blocks end at 0.25 + 0.1875 / 0.75 s.
    const auto end_of = [](int tiles, int blocks) {
        Case three;
        three.add(three.kernel(68, 0.125));
        three.add(three.copy(blocks, 0.375 * blocks, Seconds(0.0625)));
        Cost gemm = three.gemm(tiles);
        gemm.launch.time = Seconds(0.25);
        std::get<Tiles>(gemm.claim->parts).cluster = 2;
        three.add(gemm);
        return three.ends()[2];
    };
    CHECK(end_of(68, 32) == Approx(0.25 + 1));
    CHECK(end_of(68, 24) == Approx(0.25 + 1));
    CHECK(end_of(69, 24) == Approx(0.5 + 1));  // one waits until the blocks are gone
}

TEST_CASE("kernels behind a GEMM that waits for pairs of units get no single ones") {
    // Beside 20 blocks the GEMM has 64 units, and 16 are free whose partners are held. From 0.625 s on, when the blocks are
    // gone, it has all 100. Its first tiles end at 1.125 s.
    Case three;
    Cost copy = three.copy(20, 10, {});
    std::get<Blocks>(copy.claim->parts).paired = 4;
    three.add(copy);
    Cost gemm = three.gemm(100);
    gemm.launch.time = Seconds(0.125);
    std::get<Tiles>(gemm.claim->parts).cluster = 2;
    three.add(gemm);
    Cost kernel = three.kernel(16, 1);
    kernel.launch.time = Seconds(0.25);
    three.add(kernel);
    CHECK(three.ends()[1] == Approx(0.625 + 1));
    CHECK(three.ends()[2] == Approx(1.125 + 1));
}

TEST_CASE("thread blocks on few units draw no more from what they share than these can") {
    // As above, but all units together do 2 s of work a second at most.
    Case two;
    two.add(two.gemm(98));
    Cost copy = two.copy(8, 12, Seconds(0.5));
    const ResourceId hbm = two.table.hbm(0);
    copy.demands.push_back({hbm, two.table[hbm].capacity * 6});
    two.add(copy);
    // From 1 s on each unit does half a second of work a second, until the first are done and the others have
    // 0.375 left, at their own rate.
    CHECK(two.ends()[1] == Approx(1 + 2 * 2.625 + 0.375));
}

TEST_CASE("the last tiles of a GEMM that took another one's units over end one after another") {
    Case two;
    two.add(two.gemm(190));
    two.add(two.gemm(200));
    two.add(two.kernel(25, 1));
    // The second has 10 units from 1 s and 90 from 2 s on, and 180 tiles there end at 4 s. The last of the first 10 units end
    // at 3 s, and a quarter of the 90, 22, at 3.6 s: 32 are free for the kernel.
    const std::vector<double> ends = two.ends();
    CHECK(ends[0] == Approx(2));
    CHECK(ends[1] == Approx(4));
    CHECK(ends[2] == Approx(4.6));
}

}  // namespace overlap::test::tile_waves_test
