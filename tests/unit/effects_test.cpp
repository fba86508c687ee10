#include "sim/pricing/effects.hpp"

#include <catch2/catch.hpp>

#include "sim/engine/engine.hpp"
#include "sim/topology/device_dma.hpp"
#include "sim/topology/device_launch.hpp"
#include "sim/topology/device_losses.hpp"
#include "tests/test_support.hpp"

namespace overlap::test::effects_test {
namespace {

const Machine& machine() {
    static const Machine two = [] {
        DeviceSpec device = round_device();
        device.interference->compute_lost_to_dma = device.interference->compute_lost_to_copy_kernels = 0.1;
        device.interference->dma_lost_to_compute = 0.1;
        return machine_of(topology_of(2, group("full_mesh"), 1, "", device));
    }();
    return two;
}

// The whole: 2 × 1 tiles of 100 rows on 100 units, a wave of 20 µs at K = 1000. A half of it is 1 × 1 tiles
// and takes as long, so decomposition costs 20 µs in all.
const GemmShape whole{200, 100, 1000};

/// Half of the GEMM, a copy, a pack, a sum and an element-wise operator.
Cost price_of(std::size_t task, const Effects& effects) {
    TaskGraph graph;
    graph.add(Task{GemmShape{100, 100, 1000}});
    graph.add(copy_task(1, 0, 10'000));
    graph.add(Task{LocalCopyWork{Bytes(1e6), Bytes(1e6)}});
    graph.add(Task{ReduceWork{Bytes(1e6), 3}});
    graph.add(Task{MemoryBoundWork{Bytes(2e6), Bytes(1e6)}});
    const Workload workload{"", "", pair_of(CollectiveKind::all_gather, Order::collective_first, whole)};
    return price(graph, workload, machine(), CostModels(), effects)[task];
}

double alone_us(const Cost& cost) {
    return to_microseconds(isolated_time(cost, machine().resources));
}

enum { gemm_task, copy, pack, reduction, streaming, all_tasks };

bool uses_contended(const Cost& cost) {
    for (const Demand& demand : cost.demands) {
        const ResourceKind kind = machine().resources[demand.resource].kind;
        if (kind == ResourceKind::compute_units || kind == ResourceKind::hbm) return true;
    }
    return !cost.holds.empty();
}

}  // namespace

TEST_CASE("with every effect a task costs what its model says, and interferes") {
    const Effects all;
    CHECK(alone_us(price_of(gemm_task, all)) == Approx(21));
    CHECK(alone_us(price_of(copy, all)) == Approx(6));
    for (std::size_t task = 0; task < all_tasks; ++task) CHECK(uses_contended(price_of(task, all)));
}

TEST_CASE(
    "a GEMM right behind another is launched while that runs; one that waits for another stream is not") {
    TaskGraph graph;
    const TaskId sent = graph.add(copy_task(1, 0, 10'000));
    graph.add(Task{GemmShape{100, 100, 1000}});
    graph.add(Task{GemmShape{100, 100, 1000}});
    graph.add(Task{GemmShape{100, 100, 1000}}, {sent});
    graph.add(Task{LocalCopyWork{Bytes(1e6), Bytes(1e6)}});
    graph.add(Task{GemmShape{100, 100, 1000}});
    const Workload workload{"", "", pair_of(CollectiveKind::all_gather, Order::collective_first, whole)};
    const Costs costs = price(graph, workload, machine(), CostModels(), Effects());
    std::vector<double> launches;
    for (TaskId id = 1; id < graph.size(); ++id)
        if (graph[id].kind() == TaskKind::gemm) launches.push_back(to_microseconds(costs[id].launch.time));
    CHECK(launches == std::vector<double>{1, 0, 1, 1});
}

TEST_CASE("without decomposition a part of a GEMM costs its share of the whole") {
    Effects effects;
    effects.decomposition = false;
    // Half of 20 µs, and its own launch of 1 µs.
    CHECK(alone_us(price_of(gemm_task, effects)) == Approx(11));
    CHECK(alone_us(price_of(copy, effects)) == Approx(6));
}

TEST_CASE("without decomposition a part of a GEMM that is faster than its share keeps its own cost") {
    // 101 tiles of 100 rows on 100 units are two waves, of which the second
    // has one tile; 100 of them are one.
    const GemmShape two_waves{10'100, 100, 1000}, one_wave{10'000, 100, 1000};
    TaskGraph graph;
    graph.add(Task{one_wave});
    const Workload workload{"", "", pair_of(CollectiveKind::all_gather, Order::collective_first, two_waves)};
    const auto us = [&](const Effects& effects) {
        return alone_us(price(graph, workload, machine(), CostModels(), effects)[0]);
    };
    Effects effects;
    effects.decomposition = false;
    CHECK(us(Effects()) == Approx(21));
    CHECK(us(effects) == Approx(21));
    TaskGraph whole_graph;
    whole_graph.add(Task{two_waves});
    const Cost both_waves = price(whole_graph, workload, machine(), CostModels(), effects)[0];
    CHECK(alone_us(both_waves) * 100 / 101 > 22);  // what its share would be
}

TEST_CASE("without launch no task has a latency") {
    Effects effects;
    effects.launch = false;
    for (std::size_t task = 0; task < all_tasks; ++task) {
        const Cost cost = price_of(task, effects);
        CHECK(cost.launch.time + cost.setup + cost.handoffs.other_stream == Seconds());
        CHECK(std::get<Completion>(cost.end).latency == Seconds());
    }
    CHECK(alone_us(price_of(gemm_task, effects)) == Approx(20));
    CHECK(alone_us(price_of(copy, effects)) == Approx(1));
}

TEST_CASE("an event behind a kernel takes time") {
    DeviceSpec device = round_device();
    device.launch->event = microseconds(2);
    const Machine two = machine_of(topology_of(2, group("full_mesh"), 1, "", device));
    TaskGraph graph;
    const TaskId gemm = graph.add(Task{whole});
    const auto event_us = [&](const Effects& effects) {
        return to_microseconds(
            std::get<Completion>(price(graph, Workload(), two, CostModels(), effects)[gemm].end).event);
    };
    Effects without_launch;
    without_launch.launch = false;
    CHECK(event_us(Effects()) == Approx(2));
    CHECK(event_us(without_launch) == 0);
}

TEST_CASE("without contention every task keeps its own time and leaves the others alone") {
    Effects effects;
    effects.contention = false;
    for (std::size_t task = 0; task < all_tasks; ++task) {
        if (task != gemm_task) CHECK_FALSE(uses_contended(price_of(task, effects)));
        CHECK(alone_us(price_of(task, effects)) == Approx(alone_us(price_of(task, Effects()))));
    }
    // Its share of the DMA engines is interference too.
    CHECK(price_of(gemm_task, Effects()).demands.size() == 3);  // units, HBM, the one engine
    // Only other GEMMs of its GPU share the units with it.
    const Cost multiplies = price_of(gemm_task, effects);
    REQUIRE(multiplies.demands.size() == 1);
    CHECK(multiplies.demands[0].resource == machine().resources.compute_units(0));
    CHECK(multiplies.holds.empty());
}

TEST_CASE("without contention two GEMMs on two streams of a GPU take as long as one after the other") {
    Effects effects;
    effects.contention = effects.launch = false;
    TaskGraph graph;
    for (const int stream : {compute_stream, local_stream}) graph.add({.work = whole, .stream = stream});
    const Costs costs = price(graph, Workload(), machine(), CostModels(), effects);
    const Seconds one = isolated_body(costs[0], machine().resources);
    const double share = costs[0].demands[0].amount / (one.si() * 100);  // of 100 units
    CHECK(make_engine("flow")->run(graph, costs, machine().resources).makespan.si() ==
          Approx(std::max(2 * share, 1.0) * one.si()));
}

TEST_CASE("without packing local copies take no time, without computation only transfers and sums do") {
    Effects effects;
    effects.packing = false;
    CHECK(alone_us(price_of(pack, effects)) == 0);
    CHECK(alone_us(price_of(gemm_task, effects)) == Approx(21));
    effects = Effects();
    effects.computation = false;
    for (const auto task : {gemm_task, pack, streaming}) CHECK(alone_us(price_of(task, effects)) == 0);
    for (const auto task : {copy, reduction}) CHECK(alone_us(price_of(task, effects)) > 0);
}

TEST_CASE("effects are switched off by name") {
    const std::vector<std::string> names{"launch", "packing"};
    const Effects effects = without(names);
    CHECK(effects.contention);
    CHECK_FALSE(effects.launch);
    CHECK_FALSE(effects.packing);
    CHECK(effects.decomposition);
    CHECK_THAT(error_of([] { without(std::vector<std::string>{"contension"}); }),
               Catch::Contains("did you mean 'contention'"));
}

TEST_CASE("alike tasks of one stream are one class, whatever their shard, chunk and priority") {
    TaskGraph graph;
    const GemmShape half{4096, 8192, 8192}, other{2048, 8192, 8192};
    graph.add({.work = half, .shard = 0, .chunk = 0});
    graph.add({.work = half, .shard = 1, .chunk = 2, .priority = 1});
    graph.add({.work = other});
    graph.add({.work = half});
    graph.add({.work = half, .gemm_cus = 50});
    graph.add({.work = half, .stream = local_stream});
    graph.add({.work = half, .gpu = 1});
    const TaskClasses classes(graph);
    CHECK(classes.of == std::vector<std::uint32_t>{0, 1, 2, 1, 3, 4, 5});
    CHECK(classes.first == std::vector<TaskId>{0, 1, 2, 4, 5, 6});
    const Costs costs = price(graph, Workload(), machine(), CostModels(), {});
    CHECK(costs[3].body == costs[0].body);
    CHECK(costs[2].body < costs[0].body);
}

TEST_CASE("the end of a released run is an event behind a kernel that nothing waits for") {
    DeviceSpec device = round_device();
    device.launch->event = Seconds(2e-6);
    const Machine one = machine_of(topology_of(2, group("full_mesh"), 1, "", device));
    TaskGraph graph;
    const Task gemm{GemmShape{100, 100, 1000}};
    const TaskId awaited = graph.add(gemm), last = graph.add(gemm);
    const TaskId sent = graph.add(copy_task(0, 1, 10'000), {awaited});
    const Workload workload{"", "", pair_of(CollectiveKind::all_gather, Order::collective_first, whole)};
    const auto latency = [&](TaskId task, Seconds release) {
        const Costs costs = price(graph, workload, one, CostModels(), Effects(), release);
        return std::get<Completion>(costs[task].end).latency.si();
    };
    const Seconds none, some(3e-6);
    CHECK(latency(awaited, some) == latency(awaited, none));
    CHECK(latency(last, some) == Approx(latency(last, none) + 2e-6));
    CHECK(latency(sent, some) == latency(sent, none));  // its time contains such an event already
}

TEST_CASE("who waits for a push of a DMA engine waits longer, and who waits for a pull does not") {
    DeviceSpec device = round_device();
    device.dma->phases.push_dependency = Seconds(4e-6);
    const Machine one = machine_of(topology_of(2, group("full_mesh"), 1, "", device));
    const auto handoffs = [&](Direction direction) {
        Task copy = copy_task(0, 1, 10'000);
        std::get<CopyWork>(copy.work).direction = direction;
        copy.gpu = direction == Direction::push ? 0 : 1;
        return CostModels().cost(copy, one).handoffs;
    };
    CHECK(handoffs(Direction::push) == Handoffs{Seconds(4e-6), Seconds(4e-6), Seconds()});
    CHECK(handoffs(Direction::pull) == Handoffs{});
}

}  // namespace overlap::test::effects_test
