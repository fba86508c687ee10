// Measures the matrix units alone on a given number of compute units: MFMA on AMD, mma.sync on NVIDIA
// (Hopper's wgmma, which libraries use, is about half as fast again).
//
// One thread block of 256 threads a compute unit multiplies bf16 registers: `loops` times eight independent
// products a wave. Samples: from release to end, µs. More fields: flop, the work in that time. All operands
// are ones, so every sum is known and checked.

#include "models/calibration/hip/data.hpp"
#include "models/calibration/hip/elements.hpp"
#include "models/calibration/hip/lanes.hpp"
#include "models/calibration/hip/question.hpp"

namespace overlap::hip {
namespace {

constexpr int threads = 256, chains = 8;

#if defined(__CUDACC__)
constexpr int wave = 32, m = 16, n = 8, k = 16, values = 4;
using Values = float[values];

__device__ void multiply(Values& sum) {
    constexpr unsigned ones = 0x3f803f80;  // two bf16
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%4,%4,%4}, {%4,%4}, "
        "{%0,%1,%2,%3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(ones));
}
#else
constexpr int wave = 64, m = 32, n = 32, k = 8, values = 16;
using Values = float __attribute__((ext_vector_type(values)));

__device__ void multiply([[maybe_unused]] Values& sum) {
#if defined(__gfx90a__) || defined(__gfx940__) || defined(__gfx941__) || defined(__gfx942__)
    using Operand = short __attribute__((ext_vector_type(4)));
    constexpr short one = 0x3f80;  // bf16
    const Operand ones = {one, one, one, one};
    sum = __builtin_amdgcn_mfma_f32_32x32x8bf16_1k(ones, ones, sum, 0, 0, 0);
#elif defined(__HIP_DEVICE_COMPILE__)
#error "matrix instructions are known for gfx90a, gfx940, gfx941 and gfx942"
#endif
}
#endif

__global__ void __launch_bounds__(threads) multiply_many(int loops, float* sums) {
    Values sum[chains] = {};
    for (int loop = 0; loop < loops; ++loop) {
#pragma unroll
        for (int chain = 0; chain < chains; ++chain) multiply(sum[chain]);
    }
    float all = 0;
#pragma unroll
    for (int chain = 0; chain < chains; ++chain)
        for (int i = 0; i < values; ++i) all += sum[chain][i];
    sums[blockIdx.x * threads + threadIdx.x] = all;
}

__global__ void check_sums(const float* sums, int count, float expected, unsigned long long* wrong) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count && sums[i] != expected) atomicAdd(wrong, 1ULL);
}

Result run(Machine& machine, const Case& c) {
    const int blocks = static_cast<int>(c.count("blocks")), loops = static_cast<int>(c.count("loops"));
    if (blocks == 0 || loops == 0 || loops > 8192)
        throw UserError("blocks is at least 1, loops from 1 to 8192");
    check(hipSetDevice(0));
    allow_shared(multiply_many, whole_unit_shared_bytes);
    auto* sums = static_cast<float*>(machine.take(0, sizeof(float) * blocks * threads));
    poison(sums, sizeof(float) * blocks * threads);
    const std::vector<Lane> lanes = {{0, {[=](hipStream_t stream) {
                                          multiply_many<<<blocks, threads, whole_unit_shared_bytes, stream>>>(
                                              loops, sums);
                                          check_launch();
                                      }}}};
    run_lanes(machine, lanes);
    Result result;
    for (std::int64_t sample = 0; sample < c.count("n_samples"); ++sample)
        result.samples.push_back(makespan(run_lanes(machine, lanes)));
    const DeviceCounter wrong;
    // Whole numbers below 2^24: exact in any order.
    check_sums<<<blocks, threads>>>(sums, blocks * threads, static_cast<float>(chains) * values * k * loops,
                                    wrong.word);
    check_launch();
    if (wrong.value() != 0) throw WrongResult(std::to_string(wrong.value()) + " sums are wrong");
    result.more.add("flop", 2.0 * m * n * k * chains * loops * blocks * (threads / wave));
    return result;
}

}  // namespace

Question matrix_rate() {
    return {{"matrix",
             {{"blocks", Type::count}, {"loops", Type::count, "8192"}, {"n_samples", Type::count, "12"}}},
            run};
}

}  // namespace overlap::hip
