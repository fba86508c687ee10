// Kernels within one GPU: packs, scatters, sums of partial results.

#include "models/calibration/hip/replay/moves.hpp"

#include <algorithm>

#include "models/calibration/hip/elements.hpp"

namespace overlap::hip {
namespace {

constexpr int threads = 512, unroll = 4, most = 16;

struct Strided {
    char* memory;
    std::size_t pitch;

    __device__ uint4* at(unsigned row, unsigned vector) const {
        return reinterpret_cast<uint4*>(memory + row * pitch) + vector;
    }
};

struct Moves {
    Strided from[most], to[most];
    unsigned vectors[most], row_vectors[most];
};

struct Parts {
    Strided part[most], to;
    unsigned count, vectors, row_vectors;
};

/// blockIdx.y: which of the moves.
__global__ void __launch_bounds__(threads) move_blocks(Moves moves) {
    const Strided from = moves.from[blockIdx.y], to = moves.to[blockIdx.y];
    const unsigned count = moves.vectors[blockIdx.y], width = moves.row_vectors[blockIdx.y];
    const unsigned stride = gridDim.x * threads;
    for (unsigned i = blockIdx.x * threads + threadIdx.x; i < count; i += unroll * stride) {
        uint4 values[unroll];
#pragma unroll
        for (int u = 0; u < unroll; ++u)
            if (const unsigned at = i + u * stride; at < count) values[u] = *from.at(at / width, at % width);
#pragma unroll
        for (int u = 0; u < unroll; ++u)
            if (const unsigned at = i + u * stride; at < count) *to.at(at / width, at % width) = values[u];
    }
}

/// A thread reads all parts of its vectors before it writes: the result may be one of the parts.
__global__ void __launch_bounds__(threads) sum_blocks(Parts parts) {
    const unsigned stride = gridDim.x * threads;
    for (unsigned i = blockIdx.x * threads + threadIdx.x; i < parts.vectors; i += unroll * stride) {
        float sum[unroll][8] = {};
        for (unsigned p = 0; p < parts.count; ++p) {
            uint4 values[unroll];
#pragma unroll
            for (int u = 0; u < unroll; ++u)
                if (const unsigned at = i + u * stride; at < parts.vectors)
                    values[u] = *parts.part[p].at(at / parts.row_vectors, at % parts.row_vectors);
#pragma unroll
            for (int u = 0; u < unroll; ++u) {
                add_pair(sum[u], values[u].x), add_pair(sum[u] + 2, values[u].y);
                add_pair(sum[u] + 4, values[u].z), add_pair(sum[u] + 6, values[u].w);
            }
        }
#pragma unroll
        for (int u = 0; u < unroll; ++u)
            if (const unsigned at = i + u * stride; at < parts.vectors)
                *parts.to.at(at / parts.row_vectors, at % parts.row_vectors) = {
                    rounded_pair(sum[u]), rounded_pair(sum[u] + 2), rounded_pair(sum[u] + 4),
                    rounded_pair(sum[u] + 6)};
    }
}

Strided strided(const Place& place) {
    return {static_cast<char*>(place.memory), place.rows.pitch};
}
unsigned row_vectors(const Place& place) {
    return static_cast<unsigned>(place.rows.row_bytes / 16);
}
unsigned vectors(const Place& place) {
    return static_cast<unsigned>(place.rows.rows * (place.rows.row_bytes / 16));
}

}  // namespace

Operation move_operation(const std::vector<Place>& from, const std::vector<Place>& to, int compute_units) {
    Moves moves{};
    for (std::size_t i = 0; i < from.size(); ++i) {
        moves.from[i] = strided(from[i]);
        moves.to[i] = strided(to[i]);
        moves.vectors[i] = vectors(from[i]);
        moves.row_vectors[i] = row_vectors(from[i]);
    }
    const auto count = static_cast<unsigned>(from.size());
    const unsigned blocks = std::max(2 * compute_units / count, 1u);
    return [moves, blocks, count](hipStream_t stream) {
        move_blocks<<<dim3(blocks, count), threads, 0, stream>>>(moves);
        check_launch();
    };
}

Operation sum_operation(const std::vector<Place>& parts, const Place& to, int compute_units) {
    Parts all{};
    for (std::size_t i = 0; i < parts.size(); ++i) all.part[i] = strided(parts[i]);
    all.to = strided(to);
    all.count = static_cast<unsigned>(parts.size());
    all.vectors = vectors(to);
    all.row_vectors = row_vectors(to);
    return [all, compute_units](hipStream_t stream) {
        sum_blocks<<<2 * compute_units, threads, 0, stream>>>(all);
        check_launch();
    };
}

}  // namespace overlap::hip
