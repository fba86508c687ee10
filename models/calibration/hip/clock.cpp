// Measures the clock of compute units.

#include "models/calibration/hip/clock.hpp"

#include <chrono>
#include <thread>

namespace overlap::hip {
namespace {

__global__ void count(double* MHz) {
    const auto tick = [] {  // waits for the next tick of the slow clock
        const long long last = nanoseconds();
        long long now = last;
        while (now == last) now = nanoseconds();
        return now;
    };
    const long long start = tick(), first = clock64();
    while (nanoseconds() - start < 20000) {
    }
    const long long end = tick(), last = clock64();
    *MHz = static_cast<double>(last - first) * 1e3 / static_cast<double>(end - start);
}

}  // namespace

double* take_clocks(Machine& machine, int gpu, std::size_t words) {
    return static_cast<double*>(machine.take(gpu, words * sizeof(double)));
}

void count_clock(double* MHz, hipStream_t stream) {
    count<<<1, 1, 0, stream>>>(MHz);
    check_launch();
}

void rest(Machine& machine, int gpu, double* clock) {
    using namespace std::chrono_literals;
    check(hipSetDevice(gpu));
    int peak_kHz = 0;
    check(hipDeviceGetAttribute(&peak_kHz, hipDeviceAttributeClockRate, gpu));
    const auto patience = std::chrono::steady_clock::now() + 500ms;
    while (std::chrono::steady_clock::now() < patience) {
        double MHz = 0;
        count_clock(clock, machine.stream(gpu, 0));
        check(hipStreamSynchronize(machine.stream(gpu, 0)));
        check(hipMemcpy(&MHz, clock, sizeof MHz, hipMemcpyDeviceToHost));
        if (MHz > 0.985 * peak_kHz / 1e3) return;
        std::this_thread::sleep_for(5ms);
    }
}

}  // namespace overlap::hip
