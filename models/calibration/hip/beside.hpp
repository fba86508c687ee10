#pragma once

#include <string>
#include <vector>

#include "models/calibration/hip/copies.hpp"

namespace overlap::hip {

/// What runs beside the work on a GPU, from its point of view.
///   dma_in / cu_in      it pulls from its peers      dma_out / cu_out       the peers pull from it
///   dma_push / cu_push  it pushes to the peers       local_dma / local_cu   copies within it
///   dma_in_memcpy       as dma_in, by hipMemcpyAsync instead of hipMemcpyPeerAsync
///   local_dma_rows      the same, packing rows of 4 KiB out of 8 KiB
/// On NVIDIA the runtime makes local copies, contiguous or strided, with kernels: they starve beside a GEMM.
inline const std::vector<std::string> beside_words = {"dma_in",    "dma_in_memcpy",  "dma_out", "dma_push",
                                                      "local_dma", "local_dma_rows", "cu_in",   "cu_out",
                                                      "cu_push",   "local_cu"};

/// Streams of copies of one kind and their memory, a stream a peer.
class Beside {
public:
    /// The peers of `gpu` are the next ones, around all GPUs below peers + 1.
    Beside(Machine& machine, const std::string& word, int gpu, int peers, int blocks, std::size_t size);
    /// A lane a stream, each with `count` copies one after the other.
    std::vector<Lane> lanes(int count, bool high_priority) const;
    /// Every destination holds what it should.
    void expect() const;

private:
    struct Stream {
        int gpu;
        Copy copy;
    };
    std::vector<Stream> copies_;
    Agent agent_;
};

}  // namespace overlap::hip
