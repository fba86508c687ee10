#pragma once

#include <cstddef>

#include "models/calibration/hip/gpu.hpp"

namespace overlap::hip {

inline constexpr int copy_threads = 512, copy_unroll = 8;

/// A thread block's part of a contiguous copy: `copy_threads` threads, 16 bytes a load, eight
/// loads in flight a thread.
__device__ inline void copy_words(const uint4* source, uint4* destination, std::size_t count) {
    const std::size_t stride = static_cast<std::size_t>(gridDim.x) * copy_threads;
    std::size_t i = static_cast<std::size_t>(blockIdx.x) * copy_threads + threadIdx.x;
    for (; i + (copy_unroll - 1) * stride < count; i += copy_unroll * stride) {
        uint4 values[copy_unroll];
#pragma unroll
        for (int u = 0; u < copy_unroll; ++u) values[u] = source[i + u * stride];
#pragma unroll
        for (int u = 0; u < copy_unroll; ++u) destination[i + u * stride] = values[u];
    }
    for (; i < count; i += stride) destination[i] = source[i];
}

}  // namespace overlap::hip
