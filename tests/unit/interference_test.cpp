#include <catch2/catch.hpp>

#include "models/contention.hpp"
#include "tests/test_support.hpp"

using namespace overlap;
using namespace overlap::test;

namespace {

/// Three GPUs, all joined by 10 GB/s, so 20 GB/s leave (and enter) each; two DMA engines a GPU.
Machine machine_with(double to_dma, double to_kernels, double dma_to_compute) {
    DeviceSpec device = round_device();
    device.dma.peer_engines = 2;
    device.interference = {to_dma, to_kernels, dma_to_compute};
    return machine_of(topology_of(3, group("full_mesh"), 1, "", device));
}

double demand(const Cost& cost, ResourceId resource) {
    double sum = 0;
    for (const Demand& demand : cost.demands) sum += demand.resource == resource ? demand.amount : 0;
    return sum;
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
    remove_contention(machine, cost);
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
    // 3 GPUs: units, HBM, remote reads and 2 engines each, and 6 links.
    CHECK(table.size() == 21);
    CHECK(table[table.link(5)].kind == ResourceKind::link);
    CHECK(table[table.hbm(2)].name == "hbm[2]");
}
