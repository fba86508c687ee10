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
    if (f[gemm_over_latency] < 35.3) {
        if (f[kernels_wait] < 0.5) {
            return advice_of(25, fixed, 2, least);  // hetero_unfused_2d by cu, 2 chunks
        }
        if (f[comm_over_latency] < 6.18) {
            return advice_of(11, by_size, 0.5, least);  // uniform_fused_1d by cu, transfers of 0.5 latencies or more
        }
        return advice_of(6, fixed, 2, least);  // ring_chunked gemm=chunk by dma, 2 chunks
    }
    if (f[n_over_k] < 3.23) {
        return advice_of(2, uncut, 0, least);  // shard_p2p by dma
    }
    return advice_of(19, estimated, 0, least);  // uniform_fused_2d by cu, chunks by estimate
}

/// The schedule to run if the GEMM may be a kernel that polls or sets flags (flag_gated).
inline Advice advise_any(const Machine& machine, const Operator& op) {
    const Estimates least(machine, op, true);
    const Features f = features(least);
    if (f[dma_over_kernels] < 1.036) {
        if (f[p2p_over_best] < 1.623) {
            if (f[comm_over_gemm_cu] < 1.233) {
                return advice_of(26, estimated, 0, least);  // flag_gated by dma, chunks by estimate
            }
            return advice_of(6, fixed, 2, least);  // ring_chunked gemm=chunk by dma, 2 chunks
        }
        if (f[comm_over_gemm_cu] < 1.297) {
            return advice_of(19, by_size, 4, least);  // uniform_fused_2d by cu, transfers of 4 latencies or more
        }
        return advice_of(26, by_size, 2, least);  // flag_gated by dma, transfers of 2 latencies or more
    }
    if (f[ring_over_direct] < 0.986) {
        return advice_of(27, fixed, 2, least);  // flag_gated by cu, 2 chunks
    }
    if (f[operand_over_gemm] < 0.02907) {
        if (f[comm_over_latency] < 2.02) {
            return advice_of(11, estimated, 0, least);  // uniform_fused_1d by cu, chunks by estimate
        }
        return advice_of(27, balanced, 0.125, least);  // flag_gated by cu, chunks ~ sqrt(shorter / 0.125 latencies)
    }
    return advice_of(11, estimated, 0, least);  // uniform_fused_1d by cu, chunks by estimate
}

}  // namespace overlap_advice
// clang-format on

#endif
