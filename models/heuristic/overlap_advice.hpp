// Made by `sim advise --fit models/heuristic/fit.csv`; do not edit. Needs only the standard
// library (C++11) and the files beside it.
#ifndef OVERLAP_ADVICE_HPP
#define OVERLAP_ADVICE_HPP

#include "overlap_features.hpp"

// clang-format off
namespace overlap_advice {

/// The schedule to run with library GEMMs and copies.
inline Advice advise_library(const Machine& machine, const Operator& op) {
    const Estimates least(machine, op, false);
    const Features f = features(least);
    if (f[dma_over_kernels] < 0.8994) {
        if (f[gemm_over_latency] < 28.9) {
            return advice_of(6, fixed, 2, least);  // ring_chunked gemm=chunk by dma, 2 chunks
        }
        return advice_of(16, estimated, 0, least);  // hetero_unfused_1d by dma, chunks by estimate
    }
    if (f[columns_over_best] < 1.00684) {
        if (f[shard_waves] < 1.94) {
            return advice_of(19, balanced, 0.25, least);  // uniform_fused_2d by cu, chunks ~ sqrt(shorter / 0.25 latencies)
        }
        return advice_of(12, estimated, 0, least);  // hetero_fused_1d by dma, chunks by estimate
    }
    return advice_of(2, uncut, 0, least);  // shard_p2p by dma
}

/// The schedule to run if the GEMM may be a kernel that polls or sets flags (flag_gated).
inline Advice advise_any(const Machine& machine, const Operator& op) {
    const Estimates least(machine, op, true);
    const Features f = features(least);
    if (f[dma_over_kernels] < 0.9984) {
        if (f[gemm_over_latency] < 30.2) {
            return advice_of(6, fixed, 2, least);  // ring_chunked gemm=chunk by dma, 2 chunks
        }
        return advice_of(26, estimated, 0, least);  // flag_gated by dma, chunks by estimate
    }
    if (f[m_over_n] < 0.176) {
        if (f[comm_over_gemm_cu] < 0.612) {
            return advice_of(26, estimated, 0, least);  // flag_gated by dma, chunks by estimate
        }
        return advice_of(27, fixed, 4, least);  // flag_gated by cu, 4 chunks
    }
    return advice_of(2, uncut, 0, least);  // shard_p2p by dma
}

}  // namespace overlap_advice
// clang-format on

#endif
