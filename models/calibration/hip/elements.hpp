#pragma once

// Device code for matrix element types, and a counter for checks.

#include <cmath>
#include <cstdint>

#include "models/calibration/hip/dtype.hpp"
#include "models/calibration/hip/gpu.hpp"

namespace overlap::hip {

/// splitmix64: the same word for the same seed and position on every machine.
__device__ inline std::uint64_t hashed(std::uint64_t seed, std::uint64_t place) {
    std::uint64_t x = seed + (place + 1) * 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

__device__ inline float bf16_to_float(std::uint16_t bits) {
    return __uint_as_float(static_cast<unsigned>(bits) << 16);
}
__device__ inline std::uint16_t float_to_bf16(float value) {  // to nearest even; NaN does not occur
    const unsigned bits = __float_as_uint(value);
    return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

/// Two bf16 numbers in a word: added to sums, and of two sums.
__device__ inline void add_pair(float* sum, unsigned pair) {
    sum[0] += __uint_as_float(pair << 16);
    sum[1] += __uint_as_float(pair & 0xffff0000u);
}
__device__ inline unsigned rounded_pair(const float* sum) {
    return float_to_bf16(sum[0]) | static_cast<unsigned>(float_to_bf16(sum[1])) << 16;
}

/// e4m3: bias 7, subnormals in steps of 2^-9.
__device__ inline float fp8_to_float(std::uint8_t bits) {
    const int exponent = (bits >> 3) & 15, mantissa = bits & 7;
    const float size = exponent ? ldexpf(8 + mantissa, exponent - 10) : ldexpf(mantissa, -9);
    return bits & 0x80 ? -size : size;
}
__device__ inline std::uint8_t float_to_fp8(float value) {  // truncates; |value| < 256
    int exponent = 0;
    const float fraction = frexpf(fabsf(value), &exponent);  // in [0.5, 1)
    const int field = exponent + 6;
    const unsigned size = field > 0 ? (field << 3) | (static_cast<unsigned>(fraction * 16) & 7)
                                    : static_cast<unsigned>(ldexpf(fabsf(value), 9));
    return static_cast<std::uint8_t>((value < 0 ? 0x80 : 0) | size);
}

__device__ inline float load_element(const void* memory, std::size_t place, DType type) {
    if (type == DType::fp8) return fp8_to_float(static_cast<const std::uint8_t*>(memory)[place]);
    if (type == DType::fp16) return __half2float(static_cast<const __half*>(memory)[place]);
    return bf16_to_float(static_cast<const std::uint16_t*>(memory)[place]);
}

__device__ inline void store_element(void* memory, std::size_t place, DType type, float value) {
    if (type == DType::fp8)
        static_cast<std::uint8_t*>(memory)[place] = float_to_fp8(value);
    else if (type == DType::fp16)
        static_cast<__half*>(memory)[place] = __float2half(value);
    else
        static_cast<std::uint16_t*>(memory)[place] = float_to_bf16(value);
}

/// Uniform in [-1, 1) before rounding, as `fill_elements` writes.
__device__ inline float random_value(std::uint64_t seed, std::uint64_t place) {
    return static_cast<float>(hashed(seed, place) >> 40) / float(1 << 23) - 1.0f;
}

/// A zeroed counter on the current GPU.
struct DeviceCounter {
    unsigned long long* word = nullptr;
    DeviceCounter() {
        void* memory = nullptr;
        check(hipMalloc(&memory, sizeof *word));
        word = static_cast<unsigned long long*>(memory);
        check(hipMemset(word, 0, sizeof *word));
    }
    DeviceCounter(const DeviceCounter&) = delete;
    DeviceCounter& operator=(const DeviceCounter&) = delete;
    ~DeviceCounter() { static_cast<void>(hipFree(word)); }
    unsigned long long value() const {  // waits for the kernels before
        unsigned long long result = 0;
        check(hipMemcpy(&result, word, sizeof result, hipMemcpyDeviceToHost));
        return result;
    }
};

}  // namespace overlap::hip
