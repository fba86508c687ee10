#include <catch2/catch.hpp>
#include <cmath>

#include "models/cost_model_registry.hpp"
#include "models/settled_clock.hpp"
#include "models/streaming.hpp"
#include "sim/topology/device_copy_kernel.hpp"
#include "sim/topology/device_dma.hpp"
#include "sim/topology/device_launch.hpp"
#include "sim/topology/device_library.hpp"
#include "sim/topology/device_losses.hpp"
#include "tests/test_support.hpp"

namespace overlap::test::cost_models_test {
namespace {

/// Two GPUs of round numbers and one 10 GB/s link of 1 µs.
const Machine& pair_machine() {
    static const Machine machine = machine_of(topology_of(2, group("full_mesh")));
    return machine;
}

Cost cost_of(const Task& task, const Machine& machine = pair_machine(),
             const std::vector<std::string>& chosen = {}) {
    return CostModels(chosen).cost(task, machine);
}

double demand(const Cost& cost, ResourceId resource) {
    double sum = 0;
    for (const Demand& demand : cost.demands) sum += demand.resource == resource ? demand.amount : 0;
    return sum;
}

double alone_us(const Cost& cost, const Machine& machine = pair_machine()) {
    return to_microseconds(isolated_time(cost, machine.resources));
}

double body_us(const Cost& cost) {
    return to_microseconds(isolated_body(cost, pair_machine().resources));
}

const ResourceTable& table() {
    return pair_machine().resources;
}

}  // namespace

TEST_CASE("a DMA copy is command, schedule, start, bytes at the engine's rate, completion") {
    const Cost cost = cost_of(copy_task(1, 0, 10'000));
    CHECK(to_microseconds(cost.launch.time) == Approx(2));  // command 1 + schedule 1
    CHECK(cost.launch.ahead);
    CHECK(to_microseconds(cost.setup) == Approx(2));  // start 1 + latency of the link 1
    CHECK(to_microseconds(std::get<Completion>(cost.end).latency) == Approx(1));
    CHECK(alone_us(cost) == Approx(6));  // 2 + 2 + 10 kB / 10 GB/s = 1 + 1
    // Pulled: an engine of the receiver. Read from one HBM, written to the other.
    REQUIRE(cost.claim.has_value());
    CHECK(cost.claim->resource == table().dma_engine(0, 1));
    CHECK(demand(cost, cost.claim->resource) == Approx(10'000));
    CHECK(demand(cost, table().hbm(0)) == Approx(10'000));
    CHECK(demand(cost, table().hbm(1)) == Approx(10'000));
    CHECK(demand(cost, table().link(1)) == Approx(10'000));  // gpu1->gpu0
    CHECK(cost.holds.empty());
    const Cost pushed = cost_of(copy_task(1, 0, 10'000, Agent::dma, Direction::push));
    REQUIRE(pushed.claim.has_value());
    CHECK(pushed.claim->resource == table().dma_engine(1, 0));
}

TEST_CASE("a strided DMA copy keeps its engine longer, not the link") {
    Task task = copy_task(1, 0, 10'000);
    std::get<CopyWork>(task.work).run = Bytes(100);
    const Cost cost = cost_of(task);
    // Runs of 100 B, and 100 B more are lost a run: twice the engine's time.
    CHECK(demand(cost, cost.claim->resource) == Approx(20'000));
    CHECK(demand(cost, table().link(1)) == Approx(10'000));
    CHECK(body_us(cost) == Approx(2));
}

TEST_CASE("the first bytes of a DMA copy take twice their time, before the engine is at its rate") {
    DeviceSpec device = round_device();
    device.dma->phases.ramp = Bytes(5'000);
    const Machine machine = machine_of(topology_of(2, group("full_mesh"), 1, "", device));
    // 5 kB once more at 10 GB/s: 0.5 µs on top of the 6 µs above; of a copy of 1 kB only that 1 kB: 0.1 µs.
    CHECK(alone_us(cost_of(copy_task(1, 0, 10'000), machine), machine) == Approx(6.5));
    CHECK(alone_us(cost_of(copy_task(1, 0, 1'000), machine), machine) == Approx(5.2));
}

TEST_CASE("a DMA copy over several links takes each, and the narrowest decides") {
    const Machine machine = machine_of(topology_of(
        3, group("links", R"(, "pairs": [[0, 1]])") + "," + group("links", R"(, "pairs": [[1, 2]])", 5, 2)));
    const Cost cost = cost_of(copy_task(0, 2, 10'000), machine);
    CHECK(to_microseconds(cost.setup) == Approx(4));                              // start 1 + 1 + 2
    CHECK(to_microseconds(isolated_body(cost, machine.resources)) == Approx(2));  // 10 kB at 5 GB/s
}

TEST_CASE("a copy between nodes is the NIC's: no engine, no command, the route's latency") {
    const Machine machine = machine_of(topology_of(1, group("rails", "", 10, 4), 2));
    const Cost cost = cost_of(copy_task(0, 1, 10'000), machine);
    CHECK_FALSE(cost.claim.has_value());
    CHECK(cost.launch.time == Seconds());
    CHECK(alone_us(cost, machine) == Approx(5));  // 4 + 10 kB / 10 GB/s
}

TEST_CASE("a copy kernel saturates with its compute units and holds them") {
    const auto with = [](int cus, Direction direction = Direction::push) {
        return cost_of(copy_task(0, 1, 10'000, Agent::cu, direction, cus));
    };
    // r = L·ln 2 a unit: 1 − exp(−n·ln 2) = 1/2, 3/4, 7/8 of 10 GB/s.
    CHECK(body_us(with(1)) == Approx(2));
    CHECK(body_us(with(2)) == Approx(4.0 / 3));
    CHECK(body_us(with(3)) == Approx(8.0 / 7));
    CHECK(alone_us(with(1)) == Approx(5));  // launch 1 + latency 1 + 2 + completion 1
    Task running = copy_task(0, 1, 10'000, Agent::cu, Direction::push, 1);
    std::get<CopyWork>(running.work).prelaunched = true;
    CHECK(alone_us(cost_of(running)) == Approx(4));  // a kernel that runs already is not launched
    const Cost pushed = with(3);
    REQUIRE(pushed.holds.size() == 1);
    CHECK(pushed.holds[0].resource == table().compute_units(0));  // a push runs on the sender
    CHECK(pushed.holds[0].units == 3);
    CHECK_FALSE(pushed.launch.ahead);
    CHECK(demand(pushed, table().remote_read(1)) == 0);
    // A pull runs on the receiver, and its bytes are remote reads of that GPU.
    const Cost pulled = with(3, Direction::pull);
    CHECK(pulled.holds[0].resource == table().compute_units(1));
    CHECK(demand(pulled, table().remote_read(1)) == Approx(10'000));
    CHECK(table()[table().remote_read(1)].capacity == Approx(15e9));
}

TEST_CASE("packs, reductions and element-wise operators stream HBM") {
    // 1000 GB/s of HBM, 10 GB/s a unit: all 100 units.
    const Cost pack = cost_of(Task{LocalCopyWork{Bytes(1e6), Bytes(1e6)}});
    CHECK(alone_us(pack) == Approx(3));  // launch 1 + 1 MB read and written at 1 MB/µs
    CHECK(demand(pack, table().hbm(0)) == Approx(2e6));
    CHECK(demand(pack, table().compute_units(0)) == Approx(100 * 2e-6));
    CHECK(to_microseconds(pack.handoffs.other_stream) == Approx(1));
    // Runs of 100 B with 100 B lost a run take twice the time.
    CHECK(alone_us(cost_of(Task{LocalCopyWork{Bytes(1e6), Bytes(100)}})) == Approx(5));
    // Three parts are read and one sum written.
    CHECK(alone_us(cost_of(Task{ReduceWork{Bytes(1e6), 3}})) == Approx(5));
    CHECK(alone_us(cost_of(Task{MemoryBoundWork{Bytes(2e6), Bytes(1e6)}})) == Approx(4));
}

TEST_CASE("an operator with FLOPs takes the longer of its bytes and of its arithmetic at the GEMMs' rate") {
    // 100 TFLOP/s are 100 MFLOP/µs; 3 MB take 3 µs, and a launch 1 µs.
    const auto with = [](double flops) {
        return cost_of(Task{MemoryBoundWork{Bytes(2e6), Bytes(1e6), Flops(flops)}});
    };
    CHECK(alone_us(with(250e6)) == Approx(1 + 3));
    CHECK(alone_us(with(800e6)) == Approx(1 + 8));
    CHECK(demand(with(800e6), table().hbm(0)) == Approx(3e6));
    CHECK(demand(with(800e6), table().compute_units(0)) == Approx(100 * 8e-6));
}

TEST_CASE("the roofline is the larger of FLOPs and bytes over the datasheet rates") {
    const auto roofline = [](const GemmShape& shape) {
        return cost_of(Task{shape}, pair_machine(), {"gemm_roofline"});
    };
    // 2·1000³ FLOP at 100 TFLOP/s: 20 µs, more than 3 matrices of 2 MB at 1 MB/µs.
    CHECK(alone_us(roofline({1000, 1000, 1000})) == Approx(21));
    // 2·1000·1000·10 FLOP: 0.2 µs; 2·10000·2 B + 2 MB of C: 2.04 µs. Accumulating reads C too: 4.04 µs.
    CHECK(alone_us(roofline({1000, 1000, 10})) == Approx(3.04));
    CHECK(alone_us(roofline({1000, 1000, 10, DType::bf16, true})) == Approx(5.04));
    CHECK_THAT(error_of([&] { roofline({1, 1, 1, DType::fp4}); }), Catch::Contains("no peak rate for fp4"));
}

TEST_CASE("the tiled model is the default, with the kernel gap before it") {
    // 10 × 10 tiles on 100 units: one wave of 20 µs; launch gap 1 µs.
    const Cost cost = cost_of(Task{GemmShape{1000, 1000, 1000}});
    CHECK(alone_us(cost) == Approx(21));
    CHECK(demand(cost, table().compute_units(0)) == Approx(100 * 20e-6));
    // 50 tiles keep 50 units busy.
    CHECK(demand(cost_of(Task{GemmShape{500, 1000, 1000}}), table().compute_units(0)) == Approx(50 * 20e-6));
    CHECK_THAT(error_of([] {
                   cost_of(Task{GemmShape{1, 1, 1, DType::fp4}});
               }),
               Catch::Contains("no GEMM calibration for fp4") && Catch::Contains("bf16"));
}

TEST_CASE("an unknown cost model is refused with the nearest name") {
    CHECK_THAT(error_of([] { CostModels(std::vector<std::string>{"gemm_roofilne"}); }),
               Catch::Contains("did you mean 'gemm_roofline'"));
}

TEST_CASE("a copy kernel: headers, a sharp corner, a place in the queue of launches") {
    DeviceSpec device = round_device();
    DeviceCopyKernel& kernel = *device.copy_kernel;
    kernel.link_per_cu = gigabytes_per_second(2);
    kernel.saturation = 50;
    kernel.link_overhead = 0.25;
    kernel.queued_launch = microseconds(3);
    const Machine machine = machine_of(topology_of(2, group("full_mesh"), 1, "", device));
    const auto pulled = [&](int cus) {
        return cost_of(copy_task(0, 1, 10'000, Agent::cu, Direction::pull, cus), machine);
    };
    // 2 units: 4 GB/s, nowhere near the 8 that 10 GB/s leave beside headers; 8 units want 16.
    CHECK(to_microseconds(pulled(2).body) == Approx(2.5));
    CHECK(to_microseconds(pulled(8).body) == Approx(1.25));
    const Cost cost = pulled(8);
    CHECK(to_microseconds(cost.setup) == Approx(1));  // latency
    CHECK(to_microseconds(cost.launch.queued) == Approx(3));
    CHECK(cost.holds[0].units == 8);
    // Another GPU waits for completion alone, and where its wait was measured apart, as long as for any event.
    CHECK(cost.handoffs.other_gpu == Seconds());
    device.launch->remote_dependency = 10 * device.launch->dependency;
    const Seconds seen = device.launch->remote_dependency - kernel.completion;
    const Machine apart = machine_of(topology_of(2, group("full_mesh"), 1, "", device));
    CHECK(cost_of(copy_task(0, 1, 10'000, Agent::cu), apart).handoffs.other_gpu == seen);
    std::vector<double> link_bytes;
    for (const Demand& of : cost.demands)
        if (machine.resources[of.resource].kind == ResourceKind::link) link_bytes.push_back(of.amount);
    CHECK(link_bytes == std::vector<double>{12'500});
}

TEST_CASE("kernels in local memory by compute units and cache") {
    DeviceSpec device = round_device();  // 1000 GB/s of HBM, 1 MB of cache
    device.stream->cu = gigabytes_per_second(20);
    const auto body = [&](const Work& work, double units, OperandsIn operands = OperandsIn::cache) {
        return to_microseconds(streamed(work, device, units, operands).body);
    };
    const auto limited = [](double by_units, double by_memory) {
        return std::pow(std::pow(by_units, 6) + std::pow(by_memory, 6), 1.0 / 6);
    };
    const LocalCopyWork copy{Bytes(3e6), Bytes(3e6)};
    // A unit reads and writes 6 MB in 300 us; ten do it in a tenth. HBM takes 6 us.
    CHECK(body(copy, 1) == Approx(300));
    CHECK(body(copy, 10) == Approx(limited(30, 6)));
    CHECK(body(copy, 100) == Approx(limited(3, 6)));
    CHECK(to_microseconds(streamed(copy, device).body) == Approx(6));  // a schedule's, on all units
    CHECK(streamed(copy, device).units == Approx(50));                 // as many as memory feeds
    device.stream->cache = gigabytes_per_second(2000);
    CHECK(body(copy, 1000) == Approx(6));
    const LocalCopyWork fits{Bytes(5e5), Bytes(5e5)};  // 1 MB
    CHECK(body(fits, 1000) == Approx(limited(0.05, 0.5)));
    // Operands of copies and sums in schedules come from HBM, those of element-wise operators from the cache.
    CHECK(body(fits, 0, OperandsIn::memory) == Approx(1));
    CHECK(body(ReduceWork{Bytes(1e5), 2}, 0, OperandsIn::memory) == Approx(0.3));
    CHECK(body(MemoryBoundWork{Bytes(2e5), Bytes(2e5)}, 0, OperandsIn::memory) == Approx(0.2));
}

TEST_CASE("kernels that wait for their loads begin later") {
    DeviceSpec device = round_device();
    device.stream->start = microseconds(1);
    device.stream->load_start = microseconds(2);
    const auto us = [&](const Work& work) { return to_microseconds(start_of(work, device)); };
    CHECK(us(LocalCopyWork{Bytes(4096), Bytes(4096)}) == Approx(1));
    CHECK(us(LocalCopyWork{Bytes(4096), Bytes(64)}) == Approx(1));
    CHECK(us(ReduceWork{Bytes(4096), 2}) == Approx(3));
    CHECK(us(MemoryBoundWork{Bytes(4096), Bytes()}) == Approx(3));
    CHECK(us(MemoryBoundWork{Bytes(4096), Bytes(4096)}) == Approx(1));
    CHECK(us(MemoryBoundWork{Bytes(), Bytes(4096)}) == Approx(1));
}

TEST_CASE("a library has protocols for small operands, and takes the fastest") {
    DeviceSpec device = round_device();
    // 10 us + bytes at 10 GB/s, or 2 us + bytes at 1 GB/s: both take 10.89 us for 8.89 kB on the bus.
    // 1 us + bytes at 0.5 GB/s is the fastest up to 1 kB.
    device.collective_library->channels = 1;
    using Line = DeviceLibrary::Line;
    DeviceLibrary::Fit fit;
    static_cast<Line&>(fit) = {microseconds(10), gigabytes_per_second(10), {}};
    fit.small = Line{microseconds(2), gigabytes_per_second(1), {}};
    fit.smallest = Line{microseconds(1), gigabytes_per_second(0.5), {}};
    device.collective_library->collectives[CollectiveKind::all_gather] = fit;
    const Machine machine = machine_of(topology_of(2, group("full_mesh"), 1, "", device));
    const auto time = [&](double operand) {  // a half of it is on the bus
        const Task task{CollectiveKernelWork{CollectiveKind::all_gather, Bytes(operand)}};
        return alone_us(cost_of(task, machine), machine);
    };
    CHECK(time(1'000) == Approx(1 + 1));
    CHECK(time(4'000) == Approx(2 + 2));
    CHECK(time(16'000) == Approx(2 + 8));
    CHECK(time(20'000) == Approx(10 + 1));
    CHECK(time(200'000) == Approx(10 + 10));
}

TEST_CASE("a library takes measured times on as many GPUs, and a line between and beyond them") {
    DeviceSpec device = round_device();
    device.collective_library->channels = 2;
    DeviceLibrary::Fit& fit = device.collective_library->collectives[CollectiveKind::all_gather];
    fit.latency = microseconds(100);
    fit.bus = gigabytes_per_second(1);
    fit.bus_by_channels[1] = gigabytes_per_second(1);
    fit.times[2] = {
        {Bytes(1'000), microseconds(3)}, {Bytes(11'000), microseconds(5)}, {Bytes(21'000), microseconds(15)}};
    const auto time = [&](double operand, int gpus, int channels = 0) {
        const Machine machine = machine_of(topology_of(gpus, group("full_mesh"), 1, "", device));
        const Task task{CollectiveKernelWork{
            .kind = CollectiveKind::all_gather, .operand = Bytes(operand), .cus = channels}};
        return alone_us(cost_of(task, machine), machine);
    };
    CHECK(time(6'000, 2) == Approx(4));
    CHECK(time(16'000, 2) == Approx(10));
    CHECK(time(26'000, 2) == Approx(20));
    // The times are of all channels, and of two GPUs: else latency and bus rate, a half or three quarters of 8 kB.
    CHECK(time(8'000, 2, 1) == Approx(100 + 4));
    CHECK(time(8'000, 4) == Approx(100 + 6));
}

TEST_CASE("an all-reduce's own kernel takes its measured times, and a line between and beyond them") {
    DeviceSpec device = round_device();
    DeviceLibrary::AllReduce& kernel = device.collective_library->all_reduces[CollectiveKernel::one_shot];
    kernel.channels = 4;
    kernel.times[2] = {
        {Bytes(1'000), microseconds(3)}, {Bytes(11'000), microseconds(5)}, {Bytes(21'000), microseconds(15)}};
    const Machine machine = machine_of(topology_of(2, group("full_mesh"), 1, "", device));
    const auto time = [&](double operand, CollectiveKernel by = CollectiveKernel::one_shot) {
        return alone_us(
            cost_of(Task{CollectiveKernelWork{
                        .kind = CollectiveKind::all_reduce, .operand = Bytes(operand), .kernel = by}},
                    machine),
            machine);
    };
    CHECK(time(100) == Approx(3 + 0.01));  // the link takes 100 B at 10 GB/s
    CHECK(time(6'000) == Approx(4));
    CHECK(time(16'000) == Approx(10));
    CHECK(time(26'000) == Approx(20));
    CHECK_THAT(error_of([&] { time(100, CollectiveKernel::two_shot); }),
               Catch::Contains("two_shot on 2 GPUs"));
}

TEST_CASE("at the power limit a library's channels and recorded kernels slow as the clock") {
    DeviceSpec device = round_device();
    device.collective_library->channels = 1;
    DeviceLibrary::Fit& fit = device.collective_library->collectives[CollectiveKind::all_gather];
    fit.latency = microseconds(1);
    fit.bus = gigabytes_per_second(1);
    device.energy.emplace().clock_exponent = 2;
    const Machine slowed = at_speed(machine_of(topology_of(2, group("full_mesh"), 1, "", device)), 0.5);
    CHECK(clock_of(slowed) == Approx(0.25));
    // A half of 8 kB is on the bus: 4 us at the peak clock.
    CHECK(alone_us(cost_of(Task{CollectiveKernelWork{CollectiveKind::all_gather, Bytes(8'000)}}, slowed),
                   slowed) == Approx(1 + 4 * 4));
    // A quarter of its time at a quarter of the clock
    device.collective_library->clock_share = 0.25;
    const Machine shared = at_speed(machine_of(topology_of(2, group("full_mesh"), 1, "", device)), 0.5);
    CHECK(alone_us(cost_of(Task{CollectiveKernelWork{CollectiveKind::all_gather, Bytes(8'000)}}, shared),
                   shared) == Approx(1 + 4 * (0.75 + 0.25 * 4)));
    MemoryBoundWork ran;
    ran.time = microseconds(10);
    const Cost recorded = cost_of(Task{ran}, slowed);
    CHECK(to_microseconds(recorded.body) == Approx(40));
}

TEST_CASE("at the power limit a framework's sum slows by half of what the clock loses") {
    DeviceSpec device = round_device();
    device.stream->framework_sum = gigabytes_per_second(1);
    device.energy.emplace().clock_exponent = 2;
    const Machine machine = machine_of(topology_of(2, group("full_mesh"), 1, "", device));
    const Task sum{ReduceWork{.bytes = Bytes(100'000), .parts = 2, .by_framework = true}};
    CHECK(to_microseconds(cost_of(sum, machine).body) == Approx(100));
    // A quarter of the clock: half of the 100 us stays, half takes four times as long.
    CHECK(to_microseconds(cost_of(sum, at_speed(machine, 0.5)).body) == Approx(50 + 4 * 50));
}

TEST_CASE("switches that add take the operand once through each port") {
    DeviceSpec device = round_device();
    device.collective_library->channels = 1;
    DeviceLibrary::Fit& fit = device.collective_library->collectives[CollectiveKind::all_reduce];
    fit.bus = gigabytes_per_second(15);
    // Four GPUs, 1 MB: 2 * 3/4 MB go out of a GPU where GPUs add.
    for (const auto& [sums, bytes] : {std::pair(Summing::gpus, 1.5e6), std::pair(Summing::switches, 1e6)}) {
        fit.sums = sums;
        const Machine machine =
            machine_of(topology_of(4, group("switch", R"(, "name": "sw")"), 1, "", device));
        const Cost cost =
            cost_of(Task{CollectiveKernelWork{CollectiveKind::all_reduce, Bytes(1e6)}}, machine);
        CHECK(to_microseconds(cost.body) == Approx(100));  // 1.5 MB on the bus at 15 GB/s
        const std::size_t out_of_gpu = machine.topology.route(0, 1).links.front();
        double through_port = 0;
        for (const Demand& demand : cost.demands)
            if (demand.resource == machine.resources.link(out_of_gpu)) through_port += demand.amount;
        CHECK(through_port == Approx(bytes));
    }
}

}  // namespace overlap::test::cost_models_test
