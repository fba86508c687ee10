// Energy of a run by hand: idle and active power, joules of FLOPs and bytes, the power limit.
#include "models/work_energy.hpp"

#include <catch2/catch.hpp>

#include "models/cost_model_registry.hpp"
#include "sim/run/observe.hpp"
#include "sim/run/run.hpp"
#include "sim/topology/device_losses.hpp"
#include "tests/any_engine.hpp"
#include "tests/resolved.hpp"

namespace overlap::test::work_energy_test {
namespace {

/// Idle 100 W and active 50 W more; 4 pJ a FLOP; 1 nJ a byte of HBM, 2 of links, 3 more by kernels.
DeviceSpec device() {
    DeviceSpec device = round_device();
    device.board_power = Watts(1e6);
    device.energy.emplace({Watts(100),
                           Watts(50),
                           {{DType::bf16, JoulesPerFlop(4e-12)}},
                           JoulesPerByte(1e-9),
                           JoulesPerByte(2e-9),
                           JoulesPerByte(3e-9)});
    return device;
}

/// So many GPUs, every pair on a 10 GB/s link.
Machine mesh(int gpus, const DeviceSpec& spec = device(), int nodes = 1) {
    const std::string nics = R"({"type": "rails", "bandwidth_GBps": {"value": 10, "source": "test"},
        "latency_us": {"value": 1, "source": "test"}})";
    return machine_of(topology_of(gpus, group("full_mesh") + (nodes > 1 ? "," + nics : ""), nodes, "", spec));
}

struct Simulated {
    std::vector<Cost> costs;
    EngineResult result;
    std::optional<Energy> energy;
};

Simulated simulate(const TaskGraph& graph, const Machine& machine, const std::string& engine = "flow") {
    Simulated run;
    for (TaskId id = 0; id < graph.size(); ++id) run.costs.push_back(CostModels().cost(graph[id], machine));
    run.result = make_engine(engine)->run(graph, run.costs, machine.resources);
    run.energy = energy_of(graph, run.costs, run.result, machine);
    return run;
}

Simulated copy_of(double bytes, Agent agent, const std::string& engine = "flow", int gpus = 3) {
    TaskGraph graph;
    graph.add(copy_task(0, 1, bytes, agent, Direction::push, agent == Agent::cu ? 4 : 0));
    return simulate(graph, mesh(gpus), engine);
}

Task gemm(int gpu, DType dtype = DType::bf16) {
    return {GemmShape{1000, 1000, 1000, dtype}, gpu, compute_stream};
}

}  // namespace

TEST_CASE("energy of a copy: both ends are active, every GPU idles, each byte is read, sent and written") {
    const std::string engine = any_engine();
    // 1 GB over a 10 GB/s link: 0.1 s, and some microseconds. Three GPUs idle: 3 · 100 W · 0.1 s = 30 J; two
    // are active: 2 · 50 W · 0.1 s = 10 J. HBM: 2 GB · 1 nJ = 2 J; links: 1 GB · 2 nJ = 2 J.
    const Energy dma = copy_of(1e9, Agent::dma, engine).energy.value();
    CHECK(dma.idle.si() == Approx(30).epsilon(1e-3));
    CHECK(dma.active.si() == Approx(10).epsilon(1e-3));
    CHECK(dma.hbm.si() == Approx(2));
    CHECK(dma.links.si() == Approx(2));
    CHECK(dma.compute.si() == 0);
    CHECK(dma.copy_kernels.si() == 0);
    CHECK(dma.power_limit.si() == 0);
    CHECK(dma.total().si() == Approx(44).epsilon(1e-3));
    // By kernels 1 GB · 3 nJ = 3 J more, and the time of a slower copy.
    const Energy kernel = copy_of(1e9, Agent::cu, engine).energy.value();
    CHECK(kernel.copy_kernels.si() == Approx(3));
    CHECK(kernel.links.si() == Approx(2));
    CHECK(kernel.idle.si() > dma.idle.si());
}

TEST_CASE("twice the bytes take twice the energy in HBM and on links") {
    for (const Agent agent : {Agent::dma, Agent::cu}) {
        const Energy once = copy_of(1e8, agent).energy.value(), twice = copy_of(2e8, agent).energy.value();
        CHECK(twice.hbm.si() == Approx(2 * once.hbm.si()));
        CHECK(twice.links.si() == Approx(2 * once.links.si()));
        CHECK(twice.copy_kernels.si() == Approx(2 * once.copy_kernels.si()));
    }
}

TEST_CASE("a broadcast reads once and writes twice, a swap moves both ways") {
    const Machine machine = mesh(3);
    CopyWork work{0, 1, Bytes(1e9), Bytes(1e9)};
    const auto energy = [&](const CopyWork& copy) {
        Cost cost;  // as by models/copy_dma.cpp
        cost.demands.push_back({machine.resources.hbm(0), 1e9});
        return work_energy({copy, 0, transfer_stream(1)}, cost, machine).value();
    };
    CHECK(energy(work).links.si() == Approx(2));
    work.command = Swap();
    CHECK(energy(work).links.si() == Approx(4));
    work.command = Broadcast{2};
    CHECK(energy(work).links.si() == Approx(4));
    CHECK(energy(work).hbm.si() == Approx(1));  // of what the cost demands
}

TEST_CASE("energy of a GEMM: its FLOPs, the bytes that its model moves, and its GPU while it runs") {
    TaskGraph graph;
    graph.add(gemm(0));
    const Machine machine = mesh(2);
    const Simulated run = simulate(graph, machine);
    // 2 · 1000³ FLOPs · 4 pJ = 8 mJ.
    CHECK(run.energy->compute.si() == Approx(8e-3));
    double bytes = 0;
    for (const Demand& demand : run.costs[0].demands)
        if (demand.resource == machine.resources.hbm(0)) bytes += demand.amount;
    REQUIRE(bytes > 0);
    CHECK(run.energy->hbm.si() == Approx(bytes * 1e-9));
    CHECK(run.energy->active.si() == Approx(50 * (run.result.tasks[0].done - run.result.tasks[0].body).si()));
    CHECK(run.energy->idle.si() == Approx(2 * 100 * run.result.makespan.si()));
    CHECK(run.energy->links.si() == 0);
}

TEST_CASE("what overlaps on a GPU is active once") {
    TaskGraph graph;
    const Machine machine = mesh(2);
    graph.add(copy_task(0, 1, 1e9, Agent::dma, Direction::push));
    graph.add(copy_task(1, 0, 1e9, Agent::dma, Direction::push));
    const Simulated run = simulate(graph, machine);
    // Both GPUs for the same 0.1 s, not twice.
    CHECK(run.energy->active.si() == Approx(2 * 50 * 0.1).epsilon(1e-3));
}

TEST_CASE("library kernels move their share of the operand, by kernels") {
    const Machine machine = mesh(4);
    const auto links = [&](CollectiveKind kind) {
        const Energy energy =
            work_energy({CollectiveKernelWork{kind, Bytes(4e9)}, 0, transfer_stream(1)}, Cost(), machine)
                .value();
        CHECK(energy.copy_kernels.si() == Approx(1.5 * energy.links.si()));
        return energy.links.si();
    };
    CHECK(links(CollectiveKind::all_gather) == Approx(6));   // 3/4 · 4 GB · 2 nJ
    CHECK(links(CollectiveKind::all_reduce) == Approx(12));  // twice
}

TEST_CASE("a library's collective and a framework's sum may take more for a byte than copies do") {
    DeviceSpec given = device();
    given.energy->library = JoulesPerByte(5e-9);
    given.energy->framework_sum = JoulesPerByte(1e-9);
    const Machine machine = machine_of(topology_of(4, group("full_mesh"), 1, "", given));
    const Task gather{CollectiveKernelWork{CollectiveKind::all_gather, Bytes(4e9)}, 0, transfer_stream(1)};
    CHECK(work_energy(gather, Cost(), machine)->copy_kernels.si() == Approx(15));  // 3/4 · 4 GB · 5 nJ
    // 3 GB read and 1 GB written
    const Task sum{ReduceWork{.bytes = Bytes(1e9), .parts = 3, .by_framework = true}};
    CHECK(work_energy(sum, Cost(), machine)->compute.si() == Approx(4));
}

TEST_CASE("a run that works for long at more than the power limit saves the rest, by its share") {
    TaskGraph graph;
    graph.add(gemm(0));
    Machine machine = mesh(1);
    const Energy free = simulate(graph, machine).energy.value();
    // A limit of 120 W. 1 s of GEMMs with a half-time of 1 s (round_gemm): half of what is beyond is saved.
    DeviceSpec limited = device();
    limited.board_power = Watts(120);
    machine = mesh(1, limited);
    CHECK(power_limited_share(graph, machine) == 0);
    CHECK(simulate(graph, machine).energy->power_limit.si() == 0);
    machine.sustained = Seconds(1);
    CHECK(power_limited_share(graph, machine) == Approx(0.5));
    const Simulated run = simulate(graph, machine);
    const double beyond =
        run.energy->total().si() - run.energy->power_limit.si() - 120 * run.result.makespan.si();
    REQUIRE(beyond > 0);
    CHECK(run.energy->power_limit.si() == Approx(-beyond / 2));
    CHECK(run.energy->compute == free.compute);
}

TEST_CASE("no energy where a constant is not known: of the device, of the data type, of NICs") {
    TaskGraph graph;
    graph.add(gemm(0));
    CHECK_FALSE(simulate(graph, mesh(1, round_device())).energy.has_value());
    CHECK_FALSE(simulate(graph, mesh(2, device(), 2)).energy.has_value());
    Machine machine = mesh(1);
    machine.calibration.gemm[DType::fp8] = round_gemm();
    graph.add(gemm(0, DType::fp8));
    CHECK_FALSE(simulate(graph, machine).energy.has_value());
}

TEST_CASE("a shipped run has energy where its device has constants, the same by both engines") {
    const auto result = [](const std::string& topology, const std::string& engine) {
        const Json config{
            {"topology", topology}, {"schedule", "hetero_fused_1d"}, {"engine", engine}, {"seeds", 1}};
        return run(resolved(read_run_config(config, "x.json")));
    };
    CHECK_FALSE(result("mi300x_8", "flow").used.energy.has_value());
    const Energy flow = result("h200_4", "flow").used.energy.value(),
                 simgrid = result("h200_4", "simgrid").used.energy.value();
    CHECK(flow.compute.si() > 0);
    CHECK(flow.compute == simgrid.compute);
    CHECK(flow.hbm == simgrid.hbm);
    CHECK(flow.total().si() == Approx(simgrid.total().si()).epsilon(1e-3));
}

}  // namespace overlap::test::work_energy_test
