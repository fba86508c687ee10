// Copies by DMA engines and by kernels.

#include "models/calibration/hip/copies.hpp"

#include <algorithm>

#include "models/calibration/hip/copy_loop.hpp"

namespace overlap::hip {
namespace {

constexpr int threads = copy_threads, unroll = copy_unroll;

__global__ void __launch_bounds__(copy_threads)
    copy_flat(const uint4* source, uint4* destination, std::size_t count) {
    copy_words(source, destination, count);
}

/// `width` threads copy a row. A thread block works on 512 / width rows at a time, with
/// eight such groups in flight.
__global__ void __launch_bounds__(threads)
    copy_rows(const char* source, char* destination, Rows from, Rows to, int width) {
    const std::size_t group = threads / width, stride = group * gridDim.x;
    const std::size_t vectors = from.row_bytes / 16;
    for (std::size_t column = threadIdx.x % width; column < vectors; column += width) {
        std::size_t row = blockIdx.x * group + threadIdx.x / width;
        for (; row < from.rows; row += unroll * stride) {
            uint4 values[unroll];
#pragma unroll
            for (int u = 0; u < unroll; ++u)
                if (row + u * stride < from.rows)
                    values[u] =
                        reinterpret_cast<const uint4*>(source + (row + u * stride) * from.pitch)[column];
#pragma unroll
            for (int u = 0; u < unroll; ++u)
                if (row + u * stride < from.rows)
                    reinterpret_cast<uint4*>(destination + (row + u * stride) * to.pitch)[column] = values[u];
        }
    }
}

bool flat(const Rows& rows) {
    return rows.rows == 1 || rows.pitch == rows.row_bytes;
}

void by_kernel(const Copy& copy, int blocks, hipStream_t stream) {
    if (flat(copy.from) && flat(copy.to)) {
        copy_flat<<<blocks, threads, 0, stream>>>(static_cast<const uint4*>(copy.source),
                                                  static_cast<uint4*>(copy.destination),
                                                  copy.from.rows * copy.from.row_bytes / 16);
    } else {
        int width = threads;
        while (width > 1 && static_cast<std::size_t>(width / 2) * 16 >= copy.from.row_bytes) width /= 2;
        copy_rows<<<blocks, threads, 0, stream>>>(static_cast<const char*>(copy.source),
                                                  static_cast<char*>(copy.destination), copy.from, copy.to,
                                                  width);
    }
    check_launch();
}

void by_dma(const Copy& copy, hipStream_t stream) {
    const std::size_t bytes = copy.from.rows * copy.from.row_bytes;
    if (!flat(copy.from) || !flat(copy.to))
        check(hipMemcpy2DAsync(copy.destination, copy.to.pitch, copy.source, copy.from.pitch,
                               copy.from.row_bytes, copy.from.rows, hipMemcpyDeviceToDevice, stream));
    else if (copy.source_gpu != copy.destination_gpu)
        check(hipMemcpyPeerAsync(copy.destination, copy.destination_gpu, copy.source, copy.source_gpu, bytes,
                                 stream));
    else
        check(hipMemcpyAsync(copy.destination, copy.source, bytes, hipMemcpyDeviceToDevice, stream));
}

}  // namespace

Operation copy_operation(const Copy& copy, Agent agent) {
    return [copy, agent](hipStream_t stream) {
        if (agent.dma)
            by_dma(copy, stream);
        else
            by_kernel(copy, agent.blocks, stream);
    };
}

}  // namespace overlap::hip
