// Which compute units do GEMMs and collectives get where a run divides them?
#include <catch2/catch.hpp>

#include "models/contention.hpp"
#include "models/cost_model_registry.hpp"
#include "models/gemm_model.hpp"
#include "sim/run/run.hpp"
#include "sim/topology/device_library.hpp"
#include "tests/resolved.hpp"

namespace overlap::test::cu_masks_test {

using Catch::Contains;

namespace {

/// 20 × 10 tiles of 20 µs each; GPUs have 100 units.
constexpr GemmShape two_waves{2000, 1000, 1000};

GemmEstimate with_units(const GemmShape& shape, int units) {
    return estimate_gemm(shape, round_gemm(), {}, {units});
}

/// Three GPUs of 10 GB/s links, whose library has 8 channels: 12 GB/s, 4 with two of them, 1 with one.
DeviceSpec device_with_library(Residency residency = Residency::shared) {
    DeviceSpec device = round_device();
    DeviceLibrary& library = *device.collective_library;
    library.channels = 8;
    library.residency = residency;
    library.collectives[CollectiveKind::all_gather] = {
        {microseconds(5), gigabytes_per_second(12), {{2, gigabytes_per_second(4)}}}, {}};
    library.collectives[CollectiveKind::all_reduce] = {{microseconds(5), gigabytes_per_second(12), {}}, {}};
    return device;
}

Machine machine_with_library(Residency residency = Residency::shared) {
    return machine_of(topology_of(3, group("full_mesh"), 1, "", device_with_library(residency)));
}

Task collective(int cus, CollectiveKind kind = CollectiveKind::all_gather) {
    return Task{CollectiveKernelWork{kind, Bytes(36'000), cus}, 0, transfer_stream(0)};
}

Cost priced(const Task& task, const Machine& machine) {
    Cost cost = CostModels().cost(task, machine);
    add_interference(task, machine, cost);
    return cost;
}

Json gemm_beside(const std::string& kind, double bytes, const GemmShape& shape) {
    const Json gemm{{"name", "gemm"}, {"type", "gemm"}, {"m", shape.m},
                    {"n", shape.n},   {"k", shape.k},   {"dtype", "bf16"}};
    const Json moved{{"name", "moved"}, {"type", "collective"}, {"collective", kind}, {"bytes", bytes}};
    return {{"operators", {gemm, moved}}};
}

RunResult run_of(const Json& workload, const std::string& schedule, const Json& params,
                 const std::string& topology = "mi300x_8") {
    const Json json{
        {"topology", topology}, {"schedule", schedule}, {"workload", workload}, {"params", params}};
    return run(resolved(read_run_config(json, "x.json")));
}

}  // namespace

TEST_CASE("a masked GEMM has more waves of the same tiles") {
    CHECK(to_microseconds(with_units(two_waves, 0).body) == Approx(40));
    CHECK(to_microseconds(with_units(two_waves, 100).body) == Approx(40));
    CHECK(to_microseconds(with_units(two_waves, 50).body) == Approx(80));  // four waves
    // 2.5 waves cost three; 200 tiles of 20 µs in 60 µs keep 66.7 of the 80 units busy.
    const GemmEstimate some = with_units(two_waves, 80);
    CHECK(to_microseconds(some.body) == Approx(60));
    CHECK(some.compute_units_busy == Approx(200 * 20.0 / 60));
    // One unit fewer than a whole number of waves needs costs a wave.
    CHECK(to_microseconds(with_units(two_waves, 99).body) == Approx(60));
}

TEST_CASE("a library picks its tile as if there were no mask") {
    GemmParameters p = round_gemm();
    p.tiles = {{200, 200, 1.0}, {100, 100, 0.75}};
    // 100 units: 5 × 5 tiles of 80 µs in one wave, or 100 of 26.7 µs, which is faster. 50 units: two waves of
    // those, 53.3 µs; 25 units: four, 106.7 µs, though the large tiles would take one of 80.
    const GemmShape shape{1000, 1000, 1000};
    CHECK(to_microseconds(estimate_gemm(shape, p, {}, {50}).body) == Approx(2 * 20 / 0.75));
    CHECK(estimate_gemm(shape, p, {}, {25}).tile_m == 100);
    CHECK(to_microseconds(estimate_gemm(shape, p, {}, {25}).body) == Approx(4 * 20 / 0.75));
}

TEST_CASE("a persistent kernel has the tile for its work-groups, and splits no K") {
    GemmParameters p = round_gemm();
    p.tiles = {{200, 200, 1.0}, {100, 100, 0.75}};
    // As above with 25 units: one wave of 25 large tiles, 80 µs.
    const GemmEstimate own = estimate_gemm({1000, 1000, 1000}, p, {}, {.units = 25, .persistent = true});
    CHECK(own.tile_m == 200);
    CHECK(to_microseconds(own.body) == Approx(80));
    // 64 tiles of 128 x 128 and K = 36,864 leave most units idle: a library splits K.
    const GemmParameters mi300x = shipped_machine("mi300x_8").calibration.gemm_for(DType::bf16);
    const GemmShape deep{1024, 1024, 36'864};
    CHECK(estimate_gemm(deep, mi300x).split_k > 1);
    CHECK(estimate_gemm(deep, mi300x, {}, {.persistent = true}).split_k == 1);
}

TEST_CASE("a schedule's own kernel is priced as persistent, with every model of tiles") {
    const Machine machine = machine_with_library();
    for (const GemmShape& shape : {two_waves, GemmShape{100, 100, 16'000}}) {
        Task library{shape}, own{shape};
        own.persistent = true;
        const Seconds body = CostModels().cost(own, machine).body;
        CHECK(body ==
              estimate_gemm(shape, machine.calibration.gemm_for(shape.dtype), {}, {.persistent = true})
                  .total());
        CHECK(body >= CostModels().cost(library, machine).body);
    }
}

TEST_CASE("an estimate says when its last wave begins and what it leaves") {
    const GemmEstimate whole = with_units(two_waves, 0), third = with_units(two_waves, 80);
    CHECK(whole.last_wave == 1);
    CHECK(whole.last_tiles == 0);
    CHECK(third.last_wave == Approx(2.0 / 3));               // after two waves of three
    CHECK(third.last_tiles == 40);                           // 200 − 2 · 80
    CHECK(with_units({500, 1000, 1000}, 0).last_wave == 1);  // 50 tiles: one wave, begun at once
}

TEST_CASE("the mask of a task reaches its cost, with every GEMM model") {
    const Machine machine = machine_with_library();
    Task task{two_waves};
    task.gemm_cus = 50;
    const auto body = [&](const Task& gemm, const std::string& model) {
        return to_microseconds(isolated_body(CostModels(std::vector<std::string>{model}).cost(gemm, machine),
                                             machine.resources));
    };
    for (const std::string model : {"gemm_measured", "gemm_tiled", "gemm_roofline"}) {
        INFO(model);
        CHECK(body(task, model) == Approx(2 * body(Task{two_waves}, model)));
    }
}

TEST_CASE("a measured GEMM keeps its ratio to the model under a mask") {
    Machine machine = machine_with_library();
    machine.calibration.gemm_times[two_waves].time = microseconds(60);  // the model says 40
    Task task{two_waves};
    task.gemm_cus = 50;
    CHECK(to_microseconds(CostModels().cost(task, machine).body) == Approx(1.5 * 80));
    task.gemm_cus = 100;
    CHECK(to_microseconds(CostModels().cost(task, machine).body) == Approx(60));
}

TEST_CASE("a library's kernel is as fast as its channels allow, and holds them") {
    const Machine machine = machine_with_library();
    const auto body = [&](int cus) {
        return to_microseconds(CostModels().cost(collective(cus), machine).body);
    };
    // 36 kB: 2/3 of them are bus bytes, 24 kB.
    CHECK(body(0) == Approx(2));  // 12 GB/s
    CHECK(body(8) == Approx(2));
    CHECK(body(2) == Approx(6));                          // 4 GB/s
    CHECK(body(1) == Approx(12));                         // half of that: in proportion
    CHECK(body(4) == Approx(24 / (4 * std::sqrt(3.0))));  // half way on both logarithmic scales
    CHECK(CostModels().cost(collective(2), machine).holds[0].units == 2);
    CHECK(CostModels().cost(collective(0), machine).holds[0].units == 8);
    CHECK_THAT(error_of([&] { CostModels().cost(collective(4, CollectiveKind::all_reduce), machine); }),
               Contains("device round has no library measurement of all_reduce with fewer channels than 8"));
}

TEST_CASE("an all-reduce by fewer channels of RCCL on 8 MI300X is priced as measured") {
    // 512 MiB, medians of 60, of numbers of channels that the device file does not have: ROCm/tritonBLAS
    // 3b84da431371 results/rccl_sweep/raw_8192.jsonl.
    const std::map<int, double> measured_us{{4, 23993.0}, {24, 4831.5}, {48, 3535.9}, {56, 3152.6}};
    const Machine machine = shipped_machine("mi300x_8");
    double sum = 0;
    for (const auto& [channels, us] : measured_us) {
        const Task task{CollectiveKernelWork{CollectiveKind::all_reduce, Bytes(536870912), channels}};
        const double predicted =
            to_microseconds(isolated_time(CostModels().cost(task, machine), machine.resources));
        INFO(channels << " channels: " << predicted << " us, measured " << us);
        CHECK(predicted == Approx(us).epsilon(0.051));
        sum += std::abs(predicted / us - 1);
    }
    CHECK(sum / 4 < 0.032);
}

TEST_CASE("where only the library waits for compute units, GEMMs and collectives claim theirs") {
    const Machine machine = machine_with_library(Residency::tiled);
    const auto claim = [&](const Task& task) { return priced(task, machine).claim; };
    const auto gemm = claim(Task{two_waves}), kernel = claim(collective(0));
    REQUIRE((gemm && kernel));
    CHECK(gemm->least == 1);
    CHECK(gemm->most == 100);
    CHECK(gemm->yields);
    CHECK(std::holds_alternative<std::monostate>(gemm->parts));
    CHECK(kernel->least == 8);
    CHECK(kernel->most == 8);
    CHECK(claim(Task{GemmShape{500, 1000, 1000}})->most == 50);  // tiles
    const auto tail = claim(Task{GemmShape{1400, 1000, 1000}});  // 140 tiles
    CHECK(std::get<Tail>(tail->parts).from == Approx(0.5));
    CHECK(std::get<Tail>(tail->parts).units == 40);
    CHECK_FALSE(claim(copy_task(1, 0, 1e6, Agent::cu, Direction::push, 4)).has_value());
    CHECK_FALSE(claim(Task{LocalCopyWork{Bytes(1e6), Bytes(1e6)}}).has_value());
    // Without a collective among the tasks no GEMM has to.
    Cost alone = CostModels().cost(Task{two_waves}, machine);
    add_interference(Task{two_waves}, machine, alone, false);
    CHECK_FALSE(alone.claim.has_value());
    // Shared units: no kernel waits. Without contention: the same.
    CHECK_FALSE(priced(Task{two_waves}, machine_with_library()).claim.has_value());
    Cost bare = CostModels().cost(Task{two_waves}, machine);
    remove_contention(Task{two_waves}, machine, bare);
    CHECK_FALSE(bare.claim.has_value());
}

TEST_CASE(
    "beside a GEMM that fills the GPU a collective waits, unless it comes first or has units reserved") {
    // 256 bands of rows by 9 of columns: many waves, hardly any tail.
    const Json workload = gemm_beside("all_gather", 4e8, {32768, 7168, 8192});
    const auto concurrent = [&](const Json& more) {
        Json params{{"algorithm", "library"}, {"agent", "cu"}};
        params.update(more);
        return run_of(workload, "concurrent", params);
    };
    const RunResult plain = concurrent(Json::object());
    const RunResult first = concurrent({{"copy_priority", "high"}});
    const RunResult reserved = concurrent({{"gemm_cus", 240}});
    // In the GEMM's last wave, and with units at once, but after a wave for the slowest rank. arXiv 2412.14335: 21 and
    // 42 % of the ideal gain on average of 30 pairs, of which this is like one; its all-gather is
    // the shortest of them. There over RCCL and then the GEMM.
    const auto share = [](const RunResult& run) {
        return (run.phases.serial / run.makespan - 1) /
               (run.phases.serial / std::max(run.phases.gemm, run.phases.comm) - 1);
    };
    CHECK(share(plain) == Approx(0.27).margin(0.05));
    CHECK(share(first) == Approx(0.34).margin(0.07));
    // Besides compute units the GEMM on 240 units loses up to gemm_slowed_beside_library.
    const RunResult masked = run_of(workload, "serial", {{"gemm_cus", 240}}, "mi300x_1");
    CHECK(reserved.makespan >= std::max(masked.makespan, reserved.phases.comm));
    CHECK(reserved.makespan <= 1.15 * std::max(masked.makespan, reserved.phases.comm));
    // What they are held against has no mask.
    CHECK(reserved.phases.gemm == plain.phases.gemm);
    CHECK(reserved.phases.serial == plain.phases.serial);
    CHECK(masked.baseline.speedup < 1);
}

TEST_CASE("fewer channels leave the GEMM more units and take longer") {
    const Json workload = gemm_beside("all_to_all", 4e8, {8192, 8192, 8192});
    const auto run_with = [&](int cus) {
        return run_of(
            workload, "concurrent",
            {{"algorithm", "library"}, {"agent", "cu"}, {"channels", cus}, {"gemm_cus", 304 - cus}});
    };
    const RunResult few = run_with(16), many = run_with(64);
    CHECK(few.phases.comm > many.phases.comm);
    CHECK(few.used.comm_cus == 16);
    CHECK(many.used.comm_cus == 64);
}

}  // namespace overlap::test::cu_masks_test
