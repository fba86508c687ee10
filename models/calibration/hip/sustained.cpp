// Measures the clock in long runs: a GEMM repeated for milliseconds, with samples
// of power, clock and temperature.
//
// GEMM after GEMM on GPUs 0 … gpus-1, in groups of about 5 ms, for duration_ms. idle_ms > 0: a pause after
// every group, which makes bursts on a cool GPU. The host keeps one group enqueued ahead. Samples: time a
// GEMM on GPU 0, one for each group, in order, µs; the first is from a GPU that was idle for half a second.
// More fields: group_start_ms (host clock, from the start); clock_MHz, counted by a kernel of 20 µs after
// each group (clock.hpp); telemetry, one row for each reading of GPU 0, about every 5 ms:
// [ms from the start, W, SM clock in MHz, °C, NVML's bits of limits in force].

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "models/calibration/hip/clock.hpp"
#include "models/calibration/hip/gemm_case.hpp"
#include "models/calibration/hip/lanes.hpp"
#include "models/calibration/hip/question.hpp"
#include "models/calibration/hip/telemetry.hpp"

namespace overlap::hip {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr double group_us = 5000;

/// Samples GPU 0 in a thread of its own during its lifetime.
class Sampler {
public:
    explicit Sampler(Clock::time_point start) : thread_([this, start] { sample(start); }) {}
    ~Sampler() { stop(); }
    std::vector<std::vector<double>> stop() {
        stopping_ = true;
        if (thread_.joinable()) thread_.join();
        return rows_;
    }

private:
    void sample(Clock::time_point start) {
        const auto telemetry = make_telemetry(0);
        while (!stopping_) {
            const std::chrono::duration<double, std::milli> now = Clock::now() - start;
            const Reading reading = telemetry->read();
            rows_.push_back(
                {now.count(), reading.power_W, reading.clock_MHz, reading.temperature_C, reading.throttle});
            std::this_thread::sleep_for(5ms);
        }
    }

    std::vector<std::vector<double>> rows_;
    std::atomic<bool> stopping_ = false;
    std::thread thread_;
};

constexpr int most_groups = 2000;

/// One GPU's GEMM, with events around groups.
struct Runner {
    int gpu;
    std::unique_ptr<Gemm> gemm;
    std::unique_ptr<GemmOperands> operands;
    double* clocks;  ///< one word for each group
    std::size_t next_event = 0;
    std::int64_t next = 0;

    void mark(Machine& machine) {
        check(hipEventRecord(machine.event(gpu, next_event++), machine.stream(gpu, 0)));
    }
    void group(Machine& machine, int count) {
        check(hipSetDevice(gpu));
        mark(machine);
        for (int i = 0; i < count; ++i) operands->run(*gemm, next++, machine.stream(gpu, 0));
        mark(machine);
        count_clock(clocks + next_event / 2 - 1, machine.stream(gpu, 0));
    }
};

Result run(Machine& machine, const Case& c) {
    const int gpus = static_cast<int>(c.count("gpus"));
    if (gpus == 0) throw UserError("gpus is at least 1");
    need_gpus(machine, gpus);
    const GemmShape shape = gemm_shape(c);
    std::vector<Runner> runners;
    for (int gpu = 0; gpu < gpus; ++gpu) {
        check(hipSetDevice(gpu));
        runners.push_back({gpu, make_gemm(shape), std::make_unique<GemmOperands>(machine, gpu, shape),
                           take_clocks(machine, gpu, most_groups)});
        runners.back().operands->check_result(*runners.back().gemm);
    }
    const Operation one = [&](hipStream_t stream) { runners[0].operands->run(*runners[0].gemm, 0, stream); };
    const double about = run_lanes(machine, {{0, {one, one, one}}})[0].duration(2);
    const int count = std::max(1, static_cast<int>(group_us / about));
    const auto idle = std::chrono::milliseconds(c.count("idle_ms"));

    std::this_thread::sleep_for(500ms);
    const auto start = Clock::now();
    const auto end = start + std::chrono::milliseconds(c.count("duration_ms"));
    Sampler sampler(start);
    std::vector<double> starts;
    while (Clock::now() < end && starts.size() < most_groups) {
        const std::chrono::duration<double, std::milli> now = Clock::now() - start;
        starts.push_back(now.count());
        for (Runner& runner : runners) runner.group(machine, count);
        if (idle > 0ms) {
            machine.synchronize();
            std::this_thread::sleep_for(idle);
        } else if (starts.size() > 1) {
            // Waits until the group before has ended; the group just enqueued keeps the GPU busy.
            for (Runner& runner : runners) {
                float milliseconds = 0;
                while (hipEventElapsedTime(&milliseconds, machine.event(runner.gpu, runner.next_event - 4),
                                           machine.event(runner.gpu, runner.next_event - 3)) != hipSuccess)
                    std::this_thread::sleep_for(100us);
                static_cast<void>(hipGetLastError());  // clears the status "not ready"
            }
        }
    }
    machine.synchronize();

    Result result;
    for (std::size_t group = 0; group < starts.size(); ++group) {
        float milliseconds = 0;
        check(
            hipEventElapsedTime(&milliseconds, machine.event(0, 2 * group), machine.event(0, 2 * group + 1)));
        result.samples.push_back(milliseconds * 1e3 / count);
    }
    std::vector<double> clocks(starts.size());
    check(hipMemcpy(clocks.data(), runners[0].clocks, clocks.size() * sizeof(double), hipMemcpyDeviceToHost));
    result.more.add("gemms_a_group", count)
        .add("clock_MHz", clocks)
        .add("group_start_ms", starts)
        .add("telemetry", sampler.stop());
    return result;
}

}  // namespace

Question sustained() {
    return {{"sustained", gemm_keys({{"gpus", Type::count, "1"},
                                     {"duration_ms", Type::count, "2000"},
                                     {"idle_ms", Type::count, "0"}})},
            run};
}

}  // namespace overlap::hip
