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
    if (f[shard_over_launch] < 11.6) {
        return advice_of(11, by_size, 0.5, least);  // uniform_fused_1d by cu, transfers of 0.5 latencies or more
    }
    if (f[intensity] < 3.57) {
        if (f[intensity] < 3.38) {
            return advice_of(6, fixed, 2, least);  // ring_chunked gemm=chunk by dma, 2 chunks
        }
        return advice_of(16, estimated, 0, least);  // hetero_unfused_1d by dma, chunks by estimate
    }
    if (f[intensity] < 4.696) {
        return advice_of(6, fixed, 2, least);  // ring_chunked gemm=chunk by dma, 2 chunks
    }
    return advice_of(2, uncut, 0, least);  // shard_p2p by dma
}

/// The schedule to run if the GEMM may be a kernel that polls or sets flags (flag_gated).
inline Advice advise_any(const Machine& machine, const Operator& op) {
    const Estimates least(machine, op, true);
    const Features f = features(least);
    if (f[p2p_over_best] < 1.171) {
        if (f[gemm_over_latency] < 30.9) {
            return advice_of(6, fixed, 2, least);  // ring_chunked gemm=chunk by dma, 2 chunks
        }
        return advice_of(26, estimated, 0, least);  // flag_gated by dma, chunks by estimate
    }
    if (f[fused_over_best] < 1.0184) {
        if (f[comm_over_latency] < 1.67) {
            return advice_of(11, estimated, 0, least);  // uniform_fused_1d by cu, chunks by estimate
        }
        return advice_of(26, estimated, 0, least);  // flag_gated by dma, chunks by estimate
    }
    if (f[operand_over_gemm] < 0.0233) {
        if (f[m_over_k] < 1.07) {
            if (f[push_over_pull] < 1) {
                return advice_of(27, balanced, 0.125, least);  // flag_gated by cu, chunks ~ sqrt(shorter / 0.125 latencies)
            }
            return advice_of(26, estimated, 0, least);  // flag_gated by dma, chunks by estimate
        }
        return advice_of(19, estimated, 0, least);  // uniform_fused_2d by cu, chunks by estimate
    }
    return advice_of(2, uncut, 0, least);  // shard_p2p by dma
}

}  // namespace overlap_advice
// clang-format on

#endif
