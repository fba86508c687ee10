#include <catch2/catch.hpp>

#include "models/contention.hpp"
#include "models/cost_model_registry.hpp"
#include "sim/topology/device_copy_kernel.hpp"
#include "sim/topology/device_dma.hpp"
#include "sim/topology/device_launch.hpp"
#include "sim/topology/device_losses.hpp"
#include "tests/test_support.hpp"

namespace overlap::test::interference_test {
namespace {

/// Three GPUs, all joined by 10 GB/s, so 20 GB/s leave (and enter) each; two DMA engines a GPU.
Machine machine_with(double to_dma, double to_kernels, double dma_to_compute) {
    DeviceSpec device = round_device();
    device.dma->peer_engines = 2;
    device.interference->compute_lost_to_dma = to_dma;
    device.interference->compute_lost_to_copy_kernels = to_kernels;
    device.interference->dma_lost_to_compute = dma_to_compute;
    return machine_of(topology_of(3, group("full_mesh"), 1, "", device));
}

double demand(const Cost& cost, ResourceId resource) {
    double sum = 0;
    for (const Demand& demand : cost.demands) sum += demand.resource == resource ? demand.amount : 0;
    return sum;
}

Machine machine_of_persistent_gemms() {
    DeviceSpec device = round_device();
    device.launch->residency = Residency::persistent;
    return machine_of(topology_of(3, group("full_mesh"), 1, "", device));
}

}  // namespace

TEST_CASE("a transfer takes its share of the compute units of both ends") {
    const Machine machine = machine_with(0.1, 0.2, 0);
    const ResourceTable& table = machine.resources;
    Cost cost;
    add_interference(copy_task(1, 0, 40e9), machine, cost);
    // 40 GB at 2 · 20 GB/s (in and out): 1 s of a full-rate GPU; 0.1 of 100 units: 10 unit-seconds.
    CHECK(demand(cost, table.compute_units(0)) == Approx(10));
    CHECK(demand(cost, table.compute_units(1)) == Approx(10));
    CHECK(demand(cost, table.compute_units(2)) == 0);
    Cost kernel;
    add_interference(copy_task(1, 0, 40e9, Agent::cu, Direction::push, 4), machine, kernel);
    CHECK(demand(kernel, table.compute_units(0)) == Approx(20));
}

TEST_CASE("a GEMM takes its share of every DMA engine of its GPU") {
    const Machine machine = machine_with(0, 0, 0.2);
    const ResourceTable& table = machine.resources;
    Cost cost;
    cost.body = Seconds(1);
    add_interference(Task{GemmShape{1, 1, 1}, 1}, machine, cost);
    // 0.2 of 10 GB/s for 1 s, on the engines for both peers.
    REQUIRE(table.dma_engine(1, 0) != table.dma_engine(1, 2));
    CHECK(demand(cost, table.dma_engine(1, 0)) == Approx(2e9));
    CHECK(demand(cost, table.dma_engine(1, 2)) == Approx(2e9));
    CHECK(demand(cost, table.dma_engine(0, 1)) == 0);
}

TEST_CASE("terms of zero, and other kinds of task, add nothing") {
    Cost cost;
    add_interference(copy_task(1, 0, 1e9), machine_with(0, 0, 0), cost);
    add_interference(Task{GemmShape{1, 1, 1}}, machine_with(0.5, 0.5, 0), cost);
    add_interference(Task{ReduceWork{Bytes(1)}}, machine_with(0.5, 0.5, 0.5), cost);
    CHECK(cost.demands.empty());
}

TEST_CASE("without contention a task keeps its time alone, its links and its engine, and nothing else") {
    const Machine machine = machine_with(0.1, 0.1, 0.1);
    const ResourceTable& table = machine.resources;
    Cost cost;
    cost.body = Seconds(1);
    cost.demands = {{table.hbm(0), 3e12},  // 3 s at 1000 GB/s
                    {table.compute_units(0), 50},
                    {table.remote_read(0), 1e9},
                    {table.dma_engine(0, 1), 1e9},
                    {table.link(0), 1e9}};
    cost.holds = {{table.compute_units(0), 8}};
    remove_contention(copy_task(1, 0, 1e9), machine, cost);
    CHECK(cost.body.si() == Approx(3));
    CHECK(cost.holds.empty());
    CHECK(cost.demands.size() == 3);
    CHECK(demand(cost, table.hbm(0)) == 0);
    CHECK(demand(cost, table.compute_units(0)) == 0);
    CHECK(demand(cost, table.link(0)) == Approx(1e9));
}

TEST_CASE("engines are dealt to peers in turn") {
    const Machine machine = machine_with(0, 0, 0);
    const ResourceTable& table = machine.resources;
    CHECK(table.dma_engines_in_use() == 2);
    CHECK(table.dma_engine(2, 0) != table.dma_engine(2, 1));
    // With one engine all peers share it.
    const Machine one = machine_of(topology_of(3, group("full_mesh")));
    CHECK(one.resources.dma_engine(2, 0) == one.resources.dma_engine(2, 1));
    // 3 GPUs: units, HBM, remote reads, clock and 2 engines each, and 6 links.
    CHECK(table.size() == 24);
    CHECK(table[table.link(5)].kind == ResourceKind::link);
    CHECK(table[table.hbm(2)].name == "hbm[2]");
}

TEST_CASE("engines with one queue are one resource that serves as many copies as there are") {
    DeviceSpec device = round_device();
    device.dma->peer_engines = 2;
    device.dma->queues = DmaQueues::shared;
    device.dma->order = QueueOrder::round_robin;
    const Machine machine = machine_of(topology_of(3, group("full_mesh"), 1, "", device));
    const ResourceId engines = machine.resources.dma_engine(2, 0);
    CHECK(machine.resources.dma_engine(2, 1) == engines);
    CHECK(machine.resources[engines].units == 2);
    CHECK(machine.resources[engines].capacity == Approx(20e9));  // 2 x 10 GB/s
    CHECK(machine.resources[engines].order == QueueOrder::round_robin);
}

TEST_CASE("copies slow the clock of GEMMs on both of their GPUs") {
    DeviceSpec device = round_device();
    device.interference->gemm_slowed_beside_dma = 0.03;
    const Machine machine = machine_of(topology_of(3, group("full_mesh"), 1, "", device));
    Cost copy;
    add_interference(copy_task(1, 0, 1e9), machine, copy);
    REQUIRE(copy.holds.size() == 2);
    for (const Hold& hold : copy.holds) {
        CHECK(hold.units == 0.03);
        CHECK_FALSE(hold.adds_up);
    }
    CHECK(copy.holds[0].resource == machine.resources.clock(1));
    CHECK(copy.holds[1].resource == machine.resources.clock(0));
    Cost gemm;
    gemm.body = Seconds(2);
    add_interference(Task{GemmShape{1, 1, 1}, 1}, machine, gemm);
    CHECK(demand(gemm, machine.resources.clock(1)) == Approx(2));
    remove_contention(Task{GemmShape{1, 1, 1}, 1}, machine, gemm);
    CHECK(gemm.demands.empty());
}

TEST_CASE("weights are those of the resource and the class of the task") {
    DeviceSpec device = round_device();
    device.interference->weights["hbm"] = {4, 1, 2, 1, 1};  // gemm 4, copy_dma 1, copy_cu 2
    const Machine machine = machine_of(topology_of(3, group("full_mesh"), 1, "", device));
    const ResourceTable& table = machine.resources;
    const auto weight_on = [&](ResourceId resource, const Task& task) {
        Cost cost;
        cost.demands = {{resource, 1.0}};
        add_interference(task, machine, cost);
        return cost.demands[0].weight;
    };
    CHECK(weight_on(table.hbm(0), Task{GemmShape{1, 1, 1}}) == 4);
    CHECK(weight_on(table.hbm(0), copy_task(1, 0, 1e9)) == 1);
    CHECK(weight_on(table.hbm(0), copy_task(1, 0, 1e9, Agent::cu, Direction::pull, 4)) == 2);
    CHECK(weight_on(table.link(0), Task{GemmShape{1, 1, 1}}) == 1);
}

TEST_CASE("where GEMMs keep their compute units, kernels claim theirs") {
    DeviceSpec device = round_device();
    const Task gemm{GemmShape{1, 1, 1}};
    const Task kernel = copy_task(1, 0, 1e9, Agent::cu, Direction::pull, 4);
    const auto claim = [&](const Task& task, const Cost& base) {
        const Machine machine = machine_of(topology_of(3, group("full_mesh"), 1, "", device));
        Cost cost = base;
        add_interference(task, machine, cost);
        return cost.claim;
    };
    Cost sharing, holding;
    sharing.demands = {{0, 10.0}};  // cu[0]
    holding.holds = {{0, 4}};
    CHECK_FALSE(claim(gemm, sharing).has_value());  // shared, the default
    for (const Residency residency : {Residency::tiled, Residency::persistent}) {
        device.launch->residency = residency;
        const auto some = claim(gemm, sharing), exactly = claim(kernel, holding);
        REQUIRE((some && exactly));
        CHECK(some->least == 1);
        CHECK(some->most == 100);
        CHECK(some->yields == (residency == Residency::tiled));
        CHECK(exactly->least == 4);
        CHECK(exactly->most == 4);
    }
    CHECK_FALSE(claim(copy_task(1, 0, 1e9), Cost()).has_value());  // DMA: no compute units
}

TEST_CASE("a persistent GEMM claims units for its tiles, and its tiles say what cache it leaves") {
    DeviceSpec device = round_device();
    device.launch->residency = Residency::persistent;
    device.copy_kernel->beside.cache_beside_gemms = Bytes(1000);
    device.copy_kernel->beside.cache_beside_large_tiles = Bytes(2000);
    device.copy_kernel->beside.large_tile = 10'000;
    device.copy_kernel->beside.gemm_cluster = 2;
    const Machine machine = machine_of(topology_of(3, group("full_mesh"), 1, "", device));
    const auto claim = [&](int tiles, bool own = false) {
        Cost cost;
        cost.claim = Claim{machine.resources.compute_units(1), 1, 100};
        cost.claim->parts = Tiles{tiles, 2};
        Task gemm{GemmShape{1500, 1000, 1000}, 1};
        gemm.persistent = own;
        add_interference(gemm, machine, cost);
        return std::get<Tiles>(cost.claim->parts);
    };
    CHECK(claim(150).count == 150);
    CHECK(claim(150).cluster == 2);
    CHECK(claim(150, true).cluster == 1);         // a kernel of one's own
    CHECK(claim(150).cache_left == Bytes(1000));  // of 10,000 elements
    CHECK(claim(149).cache_left == Bytes(2000));
}

TEST_CASE("thread blocks that may share units claim any, and hold no others") {
    DeviceSpec device = round_device();
    device.launch->residency = Residency::persistent;
    device.copy_kernel->blocks_per_unit = 2;
    const Machine machine = machine_of(topology_of(3, group("full_mesh"), 1, "", device));
    const Task copy = copy_task(1, 0, 1e9, Agent::cu, Direction::pull, 5);
    Cost cost = CostModels().cost(copy, machine);
    REQUIRE_FALSE(cost.holds.empty());
    add_interference(copy, machine, cost);
    REQUIRE(claimed<Blocks>(cost) != nullptr);
    CHECK(claimed<Blocks>(cost)->count == 5);
    CHECK(cost.claim->least == 1);
    CHECK(cost.claim->most == 5);
    CHECK(cost.holds.empty());
}

TEST_CASE("a schedule's sum is thread blocks, two a unit, where the device says how fast these are") {
    DeviceSpec device = round_device();
    device.stream->sum = gigabytes_per_second(100);
    device.stream->sum_block = microseconds(0.5);
    device.stream->sum_block_part = microseconds(0.25);
    const Machine machine = machine_of(topology_of(2, group("full_mesh"), 1, "", device));
    const auto blocks_of = [&](bool by_framework) {
        const Task sum{ReduceWork{.bytes = Bytes(1e6), .parts = 2, .by_framework = by_framework}};
        const Cost cost = CostModels().cost(sum, machine);
        return cost.claim ? std::get<Blocks>(cost.claim->parts) : Blocks();
    };
    const Blocks sum = blocks_of(false);
    CHECK(sum.streaming);
    CHECK(sum.count == 2 * static_cast<int>(device.compute_units));
    CHECK(to_microseconds(sum.unit) == Approx(30 + sum.count * (0.5 + 2 * 0.25)));
    CHECK(blocks_of(true).count == 0);
}

TEST_CASE("a kernel that streams memory waits for the units that feed it, where GEMMs persist") {
    const Machine machine = machine_of_persistent_gemms();
    Cost cost;
    cost.body = Seconds(2);
    cost.demands = {{machine.resources.compute_units(0), 60}};
    add_interference(Task{LocalCopyWork{Bytes(1), Bytes(1)}, 0}, machine, cost);
    CHECK(cost.claim->least == 30);
    CHECK(cost.claim->most == 100);
}

TEST_CASE("an operator of a framework starts on whatever units a library's channels leave") {
    const Machine machine = machine_of_persistent_gemms();
    MemoryBoundWork ran;
    ran.time = microseconds(10);
    const Task task{ran, 0};
    Cost cost = CostModels().cost(task, machine);
    add_interference(task, machine, cost);
    CHECK(cost.claim->least == 1);
    CHECK(cost.claim->most == 100);
}

}  // namespace overlap::test::interference_test
