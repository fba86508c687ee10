// What does a library's collective take from a GEMM by the units of shader engines, and the GEMM from it?
#include <catch2/catch.hpp>

#include "models/beside_library.hpp"
#include "models/contention.hpp"
#include "models/cost_model_registry.hpp"
#include "models/gemm_engines.hpp"
#include "models/gemm_model.hpp"
#include "sim/engine/engine.hpp"
#include "sim/topology/device_library.hpp"
#include "sim/topology/device_losses.hpp"
#include "tests/test_support.hpp"

namespace overlap::test::beside_library_test {
namespace {

/// 100 units of two dies with two engines each: 25 an engine. A unit keeps its speed.
GemmParameters round_engines() {
    GemmParameters p = round_gemm();
    p.chip.dies = 2;
    p.chip.engines = 4;
    return p;
}

/// `waits`: waves of a GEMM's tiles; above 0 the collective, of 1 us without bytes, needs units that tiles leave.
Machine machine_with_engines(double gemm_lost, double library_lost, double waits = 0) {
    DeviceSpec device = round_device();
    device.interference->late_ranks_waves = waits;
    if (waits > 0) device.collective_library->residency = Residency::tiled;
    device.collective_library->channels = 8;
    device.collective_library->collectives[CollectiveKind::all_gather] = {
        {microseconds(waits > 0 ? 1 : 0), gigabytes_per_second(12), {{1, gigabytes_per_second(3)}}}, {}};
    device.interference->channels_per_engine_unit = 4;  // 8 channels: 8 / 4 − 1 = 1 unit
    device.interference->gemm_slowed_beside_library = gemm_lost;
    device.interference->collectives_slowed_beside_gemms = library_lost;
    Machine machine = machine_of(topology_of(3, group("full_mesh"), 1, "", device));
    for (auto& [dtype, parameters] : machine.calibration.gemm) {
        parameters.chip.dies = 2;
        parameters.chip.engines = 4;
    }
    return machine;
}

Cost priced(const Task& task, const Machine& machine) {
    Cost cost = CostModels().cost(task, machine);
    add_interference(task, machine, cost);
    return cost;
}

double demand(const Cost& cost, ResourceId resource) {
    for (const Demand& one : cost.demands)
        if (one.resource == resource) return one.amount;
    return 0;
}

/// 20 × 10 tiles of 20 µs each: 50 an engine.
constexpr GemmShape two_waves{2000, 1000, 1000};

}  // namespace

TEST_CASE(
    "engines get tiles in proportion to all their units, and take rounds with those that a mask leaves") {
    using namespace gemm_detail;
    GemmParameters chip;
    chip.compute_units = 304;
    chip.chip.dies = 8;
    chip.chip.engines = 32;
    chip.chip.first_large_engine = 1;  // 38 units a die: 9, 10, 10 and 9
    const auto of_die = [](const std::array<double, most_engines>& all, std::size_t die) {
        return std::vector<double>(all.begin() + 4 * static_cast<std::ptrdiff_t>(die),
                                   all.begin() + 4 * static_cast<std::ptrdiff_t>(die + 1));
    };
    using Four = std::vector<double>;
    CHECK(of_die(engines_under_mask(chip, 303, CuMask::low_bits).whole, 7) == Four{9, 10, 10, 9});
    // 144: 18 low bits in each of 8 blocks of 38, of which every eighth is a unit of die 4.
    CHECK(of_die(engines_under_mask(chip, 144, CuMask::low_bits).units, 4) == Four{4, 6, 5, 3});
    CHECK(of_die(engines_under_mask(chip, 256, CuMask::low_bits).units, 0) ==
          Four{7, 8, 9, 8});  // units 36 and 37 are the large ones
    // 304 tiles are 38 a die; 1,184 are 148: of these 9 / 38 are 35.05, 10 / 38 are 38.95.
    const Engines masked = engines_under_mask(chip, 144, CuMask::low_bits);
    CHECK(of_die(deal_tiles(masked, 304), 4) == Four{9, 10, 10, 9});
    CHECK(of_die(deal_tiles(masked, 1184), 4) == Four{35, 39, 39, 35});
    const auto rounds = [&](double units, double tiles) {
        return count_rounds(engines_under_mask(chip, units, CuMask::low_bits), tiles, chip, 0).time;
    };
    CHECK(rounds(144, 304) == 3);  // 9 tiles on 3 units
    CHECK(rounds(128, 304) == 5);  // 9 on 2
    CHECK(rounds(288, 304) == 2);
    CHECK(rounds(208, 1184) == 7);  // 39 on 6
    CHECK(rounds(16, 304) == 20);   // 2 units a die, on two engines; of die 4 on one of 9 and one of 10
    // Reserved evenly, the units of a mask are as many on each engine of every die, the large engines first.
    CHECK(of_die(engines_under_mask(chip, 296, CuMask::even).units, 3) == Four{9, 10, 9, 9});
    for (std::size_t die = 0; die < 8; ++die) {
        CHECK(of_die(engines_under_mask(chip, 272, CuMask::even).units, die) == Four{9, 9, 8, 8});
        CHECK(of_die(engines_under_mask(chip, 240, CuMask::even).units, die) == Four{8, 8, 7, 7});
    }
    // 1,184 tiles on 240 units: 39 on an engine of 7 take six rounds, on 272 units, of 8, five.
    CHECK(count_rounds(engines_under_mask(chip, 240, CuMask::even), 1184, chip, 0).time == 6);
    CHECK(count_rounds(engines_under_mask(chip, 272, CuMask::even), 1184, chip, 0).time == 5);
    // Without a lone unit's speed all rounds take equally long.
    const Rounds of_304 = count_rounds(masked, 304, chip, 0.5);
    CHECK(of_304.time == Approx(3 * 1.5));
    CHECK(of_304.busy == Approx(304.0 / 3));
}

TEST_CASE("a GEMM takes as many rounds as the units left in each engine need") {
    // MI300X: 1,184 tiles of one unit time on 304 units are 3.9 waves, which cost 4 without a soft tail. With 8 units
    // left in each of 32 engines, 37 tiles an engine take 5 rounds, with 7 units 6.
    GemmParameters p = round_engines();
    p.compute_units = 304;
    p.chip.dies = 8;
    p.chip.engines = 32;
    const GemmShape shape{3700, 3200, 1000};  // 37 × 32 tiles of 100 × 100
    CHECK(slowed_by_lost_units(shape, p, {}, 1) == Approx(5.0 / 4));
    CHECK(slowed_by_lost_units(shape, p, {}, 2) == Approx(6.0 / 4));
    // 50 tiles an engine: 25 units take two rounds, 24 three.
    CHECK(slowed_by_lost_units(two_waves, round_engines(), {}, 1) == Approx(1.5));
    CHECK(slowed_by_lost_units(two_waves, round_gemm(), {}, 1) == 1);
}

TEST_CASE("fewer units run faster each where the speed of a lone unit is known") {
    GemmParameters p = round_gemm();
    p.chip.lone_unit_speed = 2;
    p.chip.unit_speed_exponent = 1;
    // Time of a tile while a share x of the units work: (1 + x) / 2. 50 of 100 units: 0.75, in 4 waves instead of 2.
    CHECK(to_microseconds(estimate_gemm(two_waves, p, {}, {50}).body) == Approx(4 * 20 * 0.75));
    CHECK(to_microseconds(estimate_gemm(two_waves, p).body) == Approx(40));
    p.tail_floor = p.partial_floor = 0;
    // One wave of 100 tiles, then one of 40 at (1 + 0.4) / 2.
    CHECK(to_microseconds(estimate_gemm({1400, 1000, 1000}, p).body) == Approx(20 * (1 + 0.7)));
}

TEST_CASE("operands that the cache cannot hold cost a masked GEMM more") {
    GemmParameters p = round_engines();
    p.chip.mask_loss = 0.5;
    p.memory.reuse_cache = Bytes(6e6);  // A and B: 2000 · 1000 and 1000 · 1000 elements of 2 bytes
    // 50 units: 25 low bits in each of two blocks of 50 are 26 units of die 0, 13 an engine, and 24 of die 1, 12 an
    // engine, which take five rounds for 50 tiles.
    CHECK(to_microseconds(estimate_gemm(two_waves, p, {}, {50, CuMask::low_bits}).body) ==
          Approx(5 * 20 * (1 + 0.5 * 6 / (6 + 6.0))));
    // Reserved evenly, 50 units are 25 a die, 13 and 12 an engine: five rounds, too, with a loss of their own.
    p.chip.reserved_loss = 0.2;
    CHECK(to_microseconds(estimate_gemm(two_waves, p, {}, {50}).body) ==
          Approx(5 * 20 * (1 + 0.2 * 6 / (6 + 6.0))));
    CHECK(to_microseconds(estimate_gemm(two_waves, p).body) == Approx(40));
    // Not so a unit that works alone: of 20 µs it takes half, and shares nothing.
    p.chip.lone_unit_speed = 2;
    p.chip.unit_speed_exponent = 1;
    CHECK(to_microseconds(estimate_gemm({100, 100, 1000}, p, {}, {50, CuMask::low_bits}).body) ==
          Approx(20 * (1 + 0.01 * (1 + 0.5 * 0.4 / (0.4 + 6.0))) / 2));
}

TEST_CASE("a collective takes a unit of each engine, or more with many channels") {
    const DeviceSpec device = machine_with_engines(0, 0).topology.device();
    CHECK(taken_of_engines(device, 1) == 1);
    CHECK(taken_of_engines(device, 11) == 1);
    CHECK(taken_of_engines(device, 12) == 2);  // 12 / 4 − 1
    CHECK(taken_of_engines(device, 100) == most_taken);
    CHECK(shipped_machine("mi300x_8").resources.counts_engines());
    CHECK_FALSE(shipped_machine("h200_8").resources.counts_engines());
}

TEST_CASE("GEMM and library collective slow each other while both run") {
    const Machine machine = machine_with_engines(0.2, 0.5);
    const ResourceTable& resources = machine.resources;
    const Cost gemm = priced(Task{two_waves}, machine);
    const Task gather{CollectiveKernelWork{CollectiveKind::all_gather, Bytes(36'000), 8}, 0,
                      transfer_stream(0)};
    const Cost collective = priced(gather, machine);
    // 40 µs; three rounds instead of two, at 80 %: a tenth of 40 · 1.5 / 0.8.
    CHECK(demand(gemm, resources.engines(0, 1)) == Approx(0.1 * 75e-6));
    // 8 channels of 12 GB/s run at half the rate of one of 3: half of the 2 µs.
    CHECK(demand(collective, resources.channels(0)) == Approx(1e-6));
    CHECK(to_microseconds(isolated_body(gemm, resources)) == Approx(40));
    CHECK(to_microseconds(isolated_body(collective, resources)) == Approx(2));
    // The collective takes a unit of each engine: 50 tiles on 24 units are three rounds instead of two.
    TaskGraph graph;
    graph.add(Task{two_waves}, {});
    Task large = gather;
    large.work = CollectiveKernelWork{CollectiveKind::all_gather, Bytes(36e6), 8};
    graph.add(large, {});
    const std::vector<Cost> costs{priced(graph[0], machine), priced(graph[1], machine)};
    for (const char* engine : {"flow", "simgrid"}) {
        const auto times = make_engine(engine)->run(graph, costs, resources, 0).tasks;
        CHECK(to_microseconds(times[0].end - times[0].start) == Approx(1 + 75));  // after a launch of 1 µs
    }
}

TEST_CASE("a collective waits with its units for the rank whose GEMM leaves them last") {
    // Half a wave of 20 µs, then 2 µs; meanwhile the GEMM has a unit less of each engine: 8 of its 40 µs take 12.
    const Machine machine = machine_with_engines(0, 0, 0.5);
    Task gather{CollectiveKernelWork{CollectiveKind::all_gather, Bytes(36'000), 8}, 0, transfer_stream(0)};
    const auto run = [&](const char* engine, int priority) {
        TaskGraph graph;
        graph.add(Task{two_waves}, {});
        gather.priority = priority;
        graph.add(gather, {});
        const std::vector<Cost> costs{priced(graph[0], machine), priced(graph[1], machine)};
        return make_engine(engine)->run(graph, costs, machine.resources, 0).tasks;
    };
    for (const char* engine : {"flow", "simgrid"}) {
        const auto first = run(engine, 1), behind = run(engine, 0);
        CHECK(to_microseconds(first[1].end) == Approx(1 + 10 + 2));
        CHECK(to_microseconds(first[0].end) == Approx(1 + 44));
        // Of equal priority it gets its units when the GEMM has ended, and no rank is late.
        CHECK(to_microseconds(behind[1].end) == Approx(1 + 40 + 2));
    }
}

}  // namespace overlap::test::beside_library_test
