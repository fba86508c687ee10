#pragma once

#include <string>
#include <vector>

#include "models/calibration/hip/copies.hpp"

namespace overlap::hip {

/// What runs beside the work of a GPU, seen from that GPU:
///   dma_in / cu_in      it pulls from its peers      dma_out / cu_out       the peers pull from it
///   dma_push / cu_push  it pushes to the peers       local_dma / local_cu   copies within the GPU
///   dma_in_memcpy       dma_in by hipMemcpyAsync instead of hipMemcpyPeerAsync
///   local_dma_rows      local_dma that packs rows of 4 KiB out of 8 KiB
/// On NVIDIA the runtime makes local copies, contiguous or strided, with kernels: they starve beside a GEMM.
inline const std::vector<std::string> beside_words = {"dma_in",    "dma_in_memcpy",  "dma_out", "dma_push",
                                                      "local_dma", "local_dma_rows", "cu_in",   "cu_out",
                                                      "cu_push",   "local_cu"};

/// Streams of copies of one kind, with their memory: one stream for each peer.
class Beside {
public:
    /// The peers of `gpu` are the next GPUs, modulo peers + 1.
    Beside(Machine& machine, const std::string& word, int gpu, int peers, int blocks, std::size_t size);
    /// One lane for each stream, each with a copy of each of `sizes`, one after the other. No size is larger than that
    /// of the memory; for `expect` one copy has all of it.
    std::vector<Lane> lanes(const std::vector<std::size_t>& sizes, bool high_priority) const;
    /// Lanes with one copy of all of the memory.
    std::vector<Lane> lanes(bool high_priority) const { return lanes({size_}, high_priority); }
    /// Throws WrongResult unless every destination holds its source's data.
    void expect() const;

private:
    struct Stream {
        int gpu;
        Copy copy;
    };
    std::size_t size_;
    std::vector<Stream> copies_;
    Agent agent_;
};

}  // namespace overlap::hip
