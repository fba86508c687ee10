// T3: do chunks leave when they are made, does memory add what comes, does the GEMM's traffic go first?
#include <catch2/catch.hpp>

#include "sim/pricing/effects.hpp"
#include "sim/schedules/schedule.hpp"
#include "sim/topology/device_dma.hpp"
#include "sim/topology/device_launch.hpp"
#include "sim/topology/device_library.hpp"
#include "sim/topology/device_losses.hpp"
#include "tests/any_engine.hpp"
#include "tests/test_support.hpp"

namespace overlap::test::t3_test {
namespace {

/// No latency but the link's, and memory that adds.
DeviceSpec adding_device() {
    DeviceSpec device = round_device();
    device.near_memory = NearMemory::add;
    device.launch->kernel = device.launch->dependency = Seconds();
    device.launch->remote_dependency = device.launch->flag = Seconds();
    device.dma->phases.command = device.dma->phases.schedule = device.dma->phases.start =
        device.dma->phases.completion = Seconds();
    device.dma->peer_engines = 2;
    return device;
}

Machine ring_of_4(const DeviceSpec& device) {
    return machine_of(topology_of(4, group("ring"), 1, "", device));
}

/// C is 400 × 100 of bf16, 80 kB; a tile of 100 × 100 takes 20 ns a unit of K, and there are four, side by
/// side: the whole GEMM takes K · 20 ns.
Workload workload(CollectiveKind kind, std::int64_t k) {
    return {"", "", pair_of(kind, Order::gemm_first, GemmShape{400, 100, k})};
}

TaskGraph graph_of(CollectiveKind kind, std::int64_t k, const Topology& topology, int chunks = 1) {
    ScheduleParams params;
    params.chunks = chunks;
    params.transfers.direction = Direction::push;
    params.transfers.single_stream = true;
    return find_schedule("t3").build(workload(kind, k), topology, params);
}

double makespan_us(CollectiveKind kind, std::int64_t k, const Machine& machine, int chunks = 1,
                   const std::string& engine = "flow") {
    const TaskGraph graph = graph_of(kind, k, machine.topology, chunks);
    const Costs costs = price(graph, workload(kind, k), machine, CostModels(), {});
    return to_microseconds(make_engine(engine)->run(graph, costs, machine.resources).makespan);
}

int count(const TaskGraph& graph, TaskKind kind) {
    int found = 0;
    for (TaskId id = 0; id < graph.size(); ++id) found += graph[id].kind() == kind ? 1 : 0;
    return found;
}

}  // namespace

TEST_CASE("each rank stores its first shard at its neighbour, sends two on as they are made, keeps its own") {
    const Machine machine = ring_of_4(adding_device());
    const TaskGraph graph = graph_of(CollectiveKind::reduce_scatter, 1000, machine.topology);
    REQUIRE(graph.size() == 4 + 4 * 3);
    CHECK(count(graph, TaskKind::reduce) == 0);
    std::vector<double> shares;
    std::vector<int> shards;
    for (TaskId id = 0; id < graph.size(); ++id) {
        const auto* copy = std::get_if<CopyWork>(&graph[id].work);
        if (copy == nullptr || copy->src != 0) continue;
        CHECK(copy->dst == 1);
        CHECK(copy->added);
        CHECK(copy->stored == shares.empty());
        CHECK(predecessors(graph, id).size() == (shares.empty() ? 1 : 2));
        shards.push_back(graph[id].shard);
        graph.for_each_edge_into(id, [&](const Edge& edge) {
            if (graph[edge.predecessor].kind() == TaskKind::gemm) shares.push_back(edge.from);
        });
    }
    CHECK(shares == std::vector<double>{0.25, 0.5, 0.75});
    CHECK(shards == std::vector<int>{3, 2, 1});  // the last of the ring first, the neighbour's last
}

TEST_CASE("memory that can't add leaves the sums to kernels, and what a chunk waits for is theirs") {
    DeviceSpec device = adding_device();
    device.near_memory = NearMemory::none;
    const TaskGraph graph = graph_of(CollectiveKind::reduce_scatter, 1000, ring_of_4(device).topology, 2);
    CHECK(count(graph, TaskKind::copy) == 4 * 3 * 2);
    REQUIRE(count(graph, TaskKind::reduce) == 4 * 3 * 2);
    int forwarded = 0;
    for (TaskId id = 0; id < graph.size(); ++id) {
        const auto* copy = std::get_if<CopyWork>(&graph[id].work);
        if (copy == nullptr) continue;
        CHECK(!copy->added);
        for (const TaskId before : predecessors(graph, id))
            if (graph[before].kind() == TaskKind::reduce) {
                CHECK(graph[before].gpu == copy->src);
                CHECK(graph[before].shard == graph[id].shard);
                CHECK(graph[before].chunk == graph[id].chunk);
                ++forwarded;
            }
    }
    CHECK(forwarded == 4 * 2 * 2);
}

TEST_CASE("time of a fused reduce-scatter, limited by links or by the GEMM") {
    const std::string engine = any_engine();
    const Machine machine = ring_of_4(adding_device());
    using enum CollectiveKind;
    // A piece of 20 kB takes 2 µs at 10 GB/s, and its end is there 1 µs later. GEMM of 2 µs: the first piece
    // is made at 0.5, then three steps of 3 µs.
    CHECK(makespan_us(reduce_scatter, 100, machine, 1, engine) == Approx(0.5 + 3 * 3));
    // GEMM of 40 µs: pieces leave at 10, 20 and 30, and the own one is made at 40.
    CHECK(makespan_us(reduce_scatter, 2000, machine, 1, engine) == Approx(40));
    // Four chunks of 0.5 µs: from the first, at 0.125, three shards cross each link without a gap.
    CHECK(makespan_us(reduce_scatter, 100, machine, 4, engine) == Approx(0.125 + 3 * 2 + 1));
    // The gather behind it: three more steps of 2 µs and the link's latency, the GEMM long done.
    CHECK(makespan_us(all_reduce, 100, machine, 1, engine) == Approx(0.5 + 3 * 3 + 3 * 3));
}

TEST_CASE("a copy that memory adds keeps its engine for the bytes only; a store has none") {
    const Machine machine = ring_of_4(adding_device());
    Task task = copy_task(0, 1, 20'000, Agent::dma, Direction::push);
    const CostModels models;
    const Cost plain = models.cost(task, machine);
    std::get<CopyWork>(task.work).added = true;
    const Cost added = models.cost(task, machine);
    CHECK(to_microseconds(plain.setup) == Approx(1));
    CHECK(added.setup == Seconds());
    CHECK(to_microseconds(std::get<Completion>(added.end).latency) == Approx(1));
    CHECK(isolated_time(added, machine.resources) == isolated_time(plain, machine.resources));
    std::get<CopyWork>(task.work).stored = true;
    const Cost stored = models.cost(task, machine);
    CHECK(!stored.claim);
    REQUIRE(stored.demands.size() == 1);
    CHECK(machine.resources[stored.demands[0].resource].kind == ResourceKind::link);
    CHECK(to_microseconds(isolated_time(stored, machine.resources)) == Approx(3));
}

TEST_CASE("a GEMM whose traffic goes first is not slowed by copies") {
    // GEMM: 20 µs alone, 420 kB of A, B and C: all of 21 GB/s. A copy of 1 MB takes 10 GB/s of it, or with a
    // thousandth of the weight next to nothing.
    const std::string engine = any_engine();
    for (const double weight : {1.0, 1000.0}) {
        DeviceSpec device = adding_device();
        device.hbm = gigabytes_per_second(21);
        device.interference->weights["hbm"] = {weight, 1, 1, 1, 1};
        const Machine machine = ring_of_4(device);
        const Workload gemm = workload(CollectiveKind::reduce_scatter, 1000);
        TaskGraph graph;
        const TaskId multiplies = graph.add(Task{GemmShape{100, 100, 1000}, 0, compute_stream}, {});
        graph.add(copy_task(0, 1, 1e6, Agent::dma, Direction::push), {});
        const Costs costs = price(graph, gemm, machine, CostModels(), {});
        const EngineResult result = make_engine(engine)->run(graph, costs, machine.resources);
        const double expected = weight == 1 ? 1 + 19 * 21 / 11.0 : 20;
        CHECK(to_microseconds(result.tasks[multiplies].end) == Approx(expected).epsilon(0.01));
    }
}

TEST_CASE("a simulated library that goes round a ring pays each step and the last sum") {
    DeviceSpec device = adding_device();
    DeviceLibrary& library = *device.collective_library;
    library.channels = 10;
    library.pattern = CollectivePattern::ring;
    using enum CollectiveKind;
    for (const CollectiveKind kind : {all_gather, reduce_scatter, all_reduce})
        library.collectives[kind] = {{Seconds(), gigabytes_per_second(10), {}}, {}};
    const Machine machine = ring_of_4(device);
    // 80 MB on 4 GPUs: 3 pieces of 20 MB, 6 ms and 3 µs of latency. Sums: 60 MB at 1000 GB/s more, 60 µs.
    const auto cost = [&](CollectiveKind kind) {
        return CostModels().cost(Task{CollectiveKernelWork{kind, Bytes(80e6)}}, machine);
    };
    const auto time = [&](CollectiveKind kind) {
        return to_microseconds(isolated_time(cost(kind), machine.resources));
    };
    CHECK(time(all_gather) == Approx(6000 + 3));
    CHECK(time(reduce_scatter) == Approx(6000 + 3 + 60));
    CHECK(time(all_reduce) == Approx(12000 + 6 + 60));
    const auto traffic = [&](CollectiveKind kind) {
        double bytes = 0;
        for (const Demand& demand : cost(kind).demands)
            if (machine.resources[demand.resource].kind == ResourceKind::hbm) bytes += demand.amount;
        return bytes / 20e6;
    };
    CHECK(traffic(all_gather) == Approx(6));       // 3 read, 3 written
    CHECK(traffic(reduce_scatter) == Approx(11));  // 7 read, 4 written
    CHECK(traffic(all_reduce) == Approx(17));
}

}  // namespace overlap::test::t3_test
