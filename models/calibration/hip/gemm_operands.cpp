// Operands of a GEMM, and the check of its result against a plain kernel.

#include <algorithm>

#include "models/calibration/hip/data.hpp"
#include "models/calibration/hip/elements.hpp"
#include "models/calibration/hip/gemm.hpp"
#include "models/calibration/hip/machine.hpp"

namespace overlap::hip {
namespace {

constexpr int sampled = 256;  // entries of C that are computed again, one thread block for each
constexpr float start_of_c = 0.5f;

__global__ void fill_constant(void* c, std::size_t count, DType type, float value) {
    for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        store_element(c, i, type, value);
}

__global__ void compare_entries(const void* a, const void* b, const void* c, GemmShape shape,
                                unsigned long long* wrong) {
    const std::uint64_t place = hashed(shape.m, blockIdx.x) % (shape.m * shape.n);
    const std::int64_t row = place / shape.n, column = place % shape.n;
    __shared__ float partial[256];
    float sum = 0, size = 0;
    for (std::int64_t k = threadIdx.x; k < shape.k; k += 256) {
        const std::int64_t b_place = shape.dtype == DType::fp8 ? column * shape.k + k : k * shape.n + column;
        sum += load_element(a, row * shape.k + k, shape.dtype) * load_element(b, b_place, shape.dtype);
    }
    partial[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x != 0) return;
    float expected = shape.accumulate ? start_of_c : 0.0f;
    for (const float part : partial) expected += part;
    const DType type = shape.dtype == DType::fp8 ? DType::bf16 : shape.dtype;
    const float found = load_element(c, place, type);
    // Tolerance: rounding of the result (2^-8), and sums over k in another order; a product has a
    // standard deviation of 1/3.
    size = fabsf(expected) * 0.008f + 0.002f * sqrtf(static_cast<float>(shape.k)) / 3;
    if (!(fabsf(found - expected) <= size)) atomicAdd(wrong, 1ULL);
}

__global__ void count_not_written(const void* c, std::size_t count, DType type, unsigned long long* wrong) {
    unsigned long long mine = 0;
    for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        mine += isnan(load_element(c, i, type)) ? 1 : 0;
    if (mine) atomicAdd(wrong, mine);
}

}  // namespace

std::int64_t sets_of(std::int64_t bytes) {
    return std::clamp<std::int64_t>((std::int64_t{320} << 20) / bytes, 1, 64);
}

void compare_result(const GemmShape& shape, const void* a, const void* b, const void* c) {
    const DeviceCounter wrong;
    compare_entries<<<sampled, 256>>>(a, b, c, shape, wrong.word);
    check_launch();
    count_not_written<<<1024, 256>>>(c, shape.m * shape.n, result_of(shape.dtype), wrong.word);
    check_launch();
    if (const auto found = wrong.value(); found != 0)
        throw WrongResult(std::to_string(found) + " entries of the GEMM are wrong or were not written");
}

GemmOperands::GemmOperands(Machine& machine, int gpu, const GemmShape& shape) : shape_(shape), gpu_(gpu) {
    const auto element = static_cast<std::int64_t>(bytes_of(shape.dtype));
    a_bytes_ = shape.m * shape.k * element;
    b_bytes_ = shape.k * shape.n * element;
    c_bytes_ = shape.m * shape.n * static_cast<std::int64_t>(bytes_of(result_of(shape.dtype)));
    a_sets_ = sets_of(a_bytes_);
    b_sets_ = sets_of(b_bytes_);
    c_sets_ = sets_of(c_bytes_);
    a_ = static_cast<char*>(machine.take(gpu, a_bytes_ * a_sets_));
    b_ = static_cast<char*>(machine.take(gpu, b_bytes_ * b_sets_));
    c_ = static_cast<char*>(machine.take(gpu, c_bytes_ * c_sets_));
    check(hipSetDevice(gpu));
    fill_elements(a_, a_bytes_ * a_sets_ / element, shape.dtype, 1);
    fill_elements(b_, b_bytes_ * b_sets_ / element, shape.dtype, 2);
    if (shape.accumulate) fill_elements(c_, shape.m * shape.n * c_sets_, result_of(shape.dtype), 3);
}

void GemmOperands::run(Gemm& gemm, std::int64_t i, hipStream_t stream, bool cold_weights) const {
    gemm.run(a_ + i % a_sets_ * a_bytes_, b_ + (cold_weights ? i % b_sets_ * b_bytes_ : 0),
             c_ + i % c_sets_ * c_bytes_, stream);
}

void GemmOperands::check_result(Gemm& gemm) const {
    check(hipSetDevice(gpu_));
    const DType type = result_of(shape_.dtype);
    const std::size_t count = shape_.m * shape_.n;
    if (shape_.accumulate)
        fill_constant<<<1024, 256>>>(c_, count, type, start_of_c);
    else
        poison(c_, c_bytes_);
    check_launch();
    check(hipDeviceSynchronize());
    run(gemm, 0, nullptr);
    check(hipDeviceSynchronize());
    compare_result(shape_, a_, b_, c_);
}

}  // namespace overlap::hip
