// Measures the cost of launches, dependencies, flags and DMA commands.
//
// Time per step of a chain of `count` steps, released by the gate unless stated otherwise; µs:
//   events            event after event on one stream
//   kernels           empty kernel after empty kernel on one stream
//   kernels_marked    the same with an event after each kernel
//   stream_hop        empty kernels alternate between two streams of a GPU; each waits for the other's event
//   gpu_hop           the same on GPU 0 and 1
//   dma               DMA pulls of 4 KiB from GPU 1, one after the other on one stream
//   dma_kernel_hop    DMA pull of 4 KiB and empty kernel alternate between two streams: a step is both
//   kernel_dma_stream the same on one stream: a step is both
//   flag_hop          kernels on GPU 0 and 1 in turn set a flag in the other's memory and poll their own
// Not per step: how far apart two kernels start that become ready together, on two streams of a GPU:
//   streams_apart     each stream behind a gate of its own and an event with a time
//   mark_apart        one follows a kernel on its stream; the other waits for a mark (an event without a time) after it
// Host time, not gated:
//   host_launch       a kernel launch call
//   host_dma          a hipMemcpyPeerAsync call of 4 KiB

#include <array>
#include <chrono>
#include <cmath>

#include "models/calibration/hip/copies.hpp"
#include "models/calibration/hip/question.hpp"

namespace overlap::hip {
namespace {

__global__ void empty() {}

__global__ void ping_pong(int* mine, int* other, int rounds, int turn) {
    for (int round = 1; round <= rounds; ++round) {
        if (turn == 0) store_system(other, round);
        while (load_system(mine) < round) {
        }
        if (turn == 1) store_system(other, round);
    }
}

void launch_empty(hipStream_t stream) {
    empty<<<1, 1, 0, stream>>>();
    check_launch();
}

Operation small_pull(Machine& machine) {
    constexpr std::size_t bytes = 4096;
    return copy_operation(
        {machine.take(1, bytes), 1, contiguous(bytes), machine.take(0, bytes), 0, contiguous(bytes)},
        Agent{});
}

/// Steps on one stream.
double chain(Machine& machine, const std::vector<Operation>& step, int count, bool mark_each) {
    Lane lane{0, {}, mark_each};
    for (int i = 0; i < count; ++i) lane.operations.insert(lane.operations.end(), step.begin(), step.end());
    const LaneTimes times = run_lanes(machine, {lane})[0];
    return (times.end() - times.start) / count;
}

/// Alternates `first` on stream 0 of GPU 0 with `second` on another stream, of GPU `second_gpu`.
double hops(Machine& machine, const Operation& first, const Operation& second, int second_gpu, int count) {
    const int gpus[] = {0, second_gpu};
    const hipStream_t streams[] = {machine.stream(0, 0), machine.stream(second_gpu, 1)};
    std::size_t next = 0;
    const auto record = [&](int side) {
        check(hipSetDevice(gpus[side]));
        const hipEvent_t event = machine.event(gpus[side], next++);
        check(hipEventRecord(event, streams[side]));
        return event;
    };
    check(hipSetDevice(0));
    gate().hold(streams[0]);
    const hipEvent_t start = record(0);
    for (int step = 0; step < count; ++step) {
        for (const int side : {0, 1}) {
            check(hipSetDevice(gpus[side]));
            (side == 0 ? first : second)(streams[side]);
            const hipEvent_t done = record(side);
            check(hipSetDevice(gpus[1 - side]));
            check(hipStreamWaitEvent(streams[1 - side], done, 0));
        }
    }
    const hipEvent_t end = record(0);
    gate().open();
    machine.synchronize();
    float milliseconds = 0;
    check(hipEventElapsedTime(&milliseconds, start, end));
    return milliseconds * 1e3 / count;
}

double flag_hop(Machine& machine, int rounds) {
    int* flags[] = {machine.flags(0), machine.flags(1)};
    std::vector<Lane> lanes;
    for (const int gpu : {0, 1})
        lanes.push_back({gpu, {[=](hipStream_t stream) {
                             ping_pong<<<1, 1, 0, stream>>>(flags[gpu], flags[1 - gpu], rounds, gpu);
                             check_launch();
                         }}});
    const auto times = run_lanes(machine, lanes);
    return (times[0].end() - times[0].start) / rounds / 2;
}

__global__ void note_time(long long* when) {
    *when = nanoseconds();
}

/// Time between the starts of two kernels, µs. `prepare` makes both streams wait.
template <class Prepare>
double starts_apart(Machine& machine, Prepare&& prepare) {
    check(hipSetDevice(0));
    const std::array streams{machine.stream(0, 0), machine.stream(0, 1)};
    auto* const times = static_cast<long long*>(machine.take(0, 2 * sizeof(long long)));
    prepare(streams);
    for (const int side : {0, 1}) {
        note_time<<<1, 1, 0, streams[side]>>>(times + side);
        check_launch();
    }
    gate().open();
    machine.synchronize();
    std::array<long long, 2> when{};
    check(hipMemcpy(when.data(), times, sizeof when, hipMemcpyDeviceToHost));
    machine.reset();
    return std::abs(static_cast<double>(when[1] - when[0])) * 1e-3;
}

double streams_apart(Machine& machine) {
    return starts_apart(machine, [&](const std::array<hipStream_t, 2>& streams) {
        for (std::size_t side = 0; side < streams.size(); ++side) {
            gate().hold(streams[side]);
            check(hipEventRecord(machine.event(0, side), streams[side]));
        }
    });
}

double mark_apart(Machine& machine) {
    return starts_apart(machine, [&](const std::array<hipStream_t, 2>& streams) {
        gate().hold(streams[0]);
        launch_empty(streams[0]);
        check(hipEventRecord(machine.mark(0, 0), streams[0]));
        check(hipStreamWaitEvent(streams[1], machine.mark(0, 0), 0));
    });
}

double host_time(Machine& machine, const Operation& operation, int count) {
    check(hipSetDevice(0));
    const hipStream_t stream = machine.stream(0, 0);
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < count; ++i) operation(stream);
    const std::chrono::duration<double, std::micro> taken = std::chrono::steady_clock::now() - start;
    machine.synchronize();
    return taken.count() / count;
}

double one_sample(Machine& machine, const std::string& what, const Operation& pull, int count) {
    const Operation nothing = [](hipStream_t) {};
    if (what == "events") return chain(machine, {nothing}, count, true);
    if (what == "kernels") return chain(machine, {launch_empty}, count, false);
    if (what == "kernels_marked") return chain(machine, {launch_empty}, count, true);
    if (what == "stream_hop") return hops(machine, launch_empty, launch_empty, 0, count) / 2;
    if (what == "gpu_hop") return hops(machine, launch_empty, launch_empty, 1, count) / 2;
    if (what == "dma") return chain(machine, {pull}, count, false);
    if (what == "dma_kernel_hop") return hops(machine, pull, launch_empty, 0, count);
    if (what == "kernel_dma_stream") return chain(machine, {launch_empty, pull}, count, false);
    if (what == "flag_hop") return flag_hop(machine, count);
    if (what == "streams_apart") return streams_apart(machine);
    if (what == "mark_apart") return mark_apart(machine);
    if (what == "host_launch") return host_time(machine, launch_empty, count);
    return host_time(machine, pull, count);
}

Result run(Machine& machine, const Case& c) {
    const int count = static_cast<int>(c.count("count"));
    if (count < 1 || count > 200) throw UserError("count is from 1 to 200: more would fill the launch queue");
    const std::string& what = c.word("what");
    const bool two = what == "gpu_hop" || what == "flag_hop" || what.find("dma") != std::string::npos;
    need_gpus(machine, two ? 2 : 1);
    const Operation pull = two ? small_pull(machine) : launch_empty;
    one_sample(machine, what, pull, count);
    Result result;
    for (std::int64_t sample = 0; sample < c.count("n_samples"); ++sample)
        result.samples.push_back(one_sample(machine, what, pull, count));
    return result;
}

}  // namespace

Question latency() {
    return {{"latency",
             {{"what",
               Type::word,
               "",
               {"events", "kernels", "kernels_marked", "stream_hop", "gpu_hop", "dma", "dma_kernel_hop",
                "kernel_dma_stream", "flag_hop", "streams_apart", "mark_apart", "host_launch", "host_dma"}},
              {"count", Type::count, "100"},
              {"n_samples", Type::count, "15"}}},
            run};
}

}  // namespace overlap::hip
