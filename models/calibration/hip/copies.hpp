#pragma once

#include "models/calibration/hip/data.hpp"
#include "models/calibration/hip/lanes.hpp"

namespace overlap::hip {

/// Who moves the bytes: a DMA engine, or a kernel of `blocks` thread blocks.
struct Agent {
    bool dma = true;
    int blocks = 0;
};

/// `from` and `to` have the same rows and row length; their pitches may differ.
struct Copy {
    const void* source = nullptr;
    int source_gpu = 0;
    Rows from;
    void* destination = nullptr;
    int destination_gpu = 0;
    Rows to;
};

/// A block of contiguous bytes as rows.
inline Rows contiguous(std::size_t bytes) {
    return {1, bytes, bytes};
}

/// Strided DMA copies use hipMemcpy2DAsync. The driver chooses which GPU's engine serves a copy. Kernels move
/// 16 bytes a load with eight loads in flight a thread and 512 threads a block, so that about 16 blocks fill
/// a link of 400 GB/s at 1.5 µs of latency.
Operation copy_operation(const Copy& copy, Agent agent);

}  // namespace overlap::hip
