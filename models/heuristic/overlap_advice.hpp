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
    if (f[dma_over_kernels] < 0.8835) {
        if (f[n_over_k] < 1.42) {
            return advice_of(6, fixed, 2, least);  // ring_chunked gemm=chunk by dma, 2 chunks
        }
        if (f[serial_over_best] < 1.66) {
            return advice_of(6, fixed, 2, least);  // ring_chunked gemm=chunk by dma, 2 chunks
        }
        return advice_of(16, balanced, 4, least);  // hetero_unfused_1d by dma, chunks ~ sqrt(shorter / 4 latencies)
    }
    return advice_of(2, uncut, 0, least);  // shard_p2p by dma
}

/// The schedule to run if the GEMM may be a kernel that polls or sets flags (flag_gated).
inline Advice advise_any(const Machine& machine, const Operator& op) {
    const Estimates least(machine, op, true);
    const Features f = features(least);
    if (f[dma_over_kernels] < 0.99607) {
        if (f[waves] < 19.7) {
            if (f[m_over_n] < 6.06) {
                return advice_of(26, estimated, 0, least);  // flag_gated by dma, chunks by estimate
            }
            return advice_of(6, balanced, 2, least);  // ring_chunked gemm=chunk by dma, chunks ~ sqrt(shorter / 2 latencies)
        }
        return advice_of(26, estimated, 0, least);  // flag_gated by dma, chunks by estimate
    }
    if (f[p2p_over_best] < 1.618) {
        return advice_of(2, uncut, 0, least);  // shard_p2p by dma
    }
    if (f[columns_over_best] < 1.35496) {
        return advice_of(26, balanced, 8, least);  // flag_gated by dma, chunks ~ sqrt(shorter / 8 latencies)
    }
    return advice_of(27, fixed, 4, least);  // flag_gated by cu, 4 chunks
}

}  // namespace overlap_advice
// clang-format on

#endif
