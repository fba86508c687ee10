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
    if (f[fused_over_best] < 1.0111) {
        if (f[intensity] < 3.84) {
            if (f[serial_over_best] < 1.0000000000000002) {
                if (f[columns_over_best] < 1.33) {
                    return advice_of(20, estimated, 0, least);  // hetero_fused_2d by dma, chunks by estimate
                }
                return advice_of(11, estimated, 0, least);  // uniform_fused_1d by cu, chunks by estimate
            }
            return advice_of(2, uncut, 0, least);  // shard_p2p by dma
        }
        return advice_of(13, by_size, 4, least);  // hetero_fused_1d by cu, transfers of 4 latencies or more
    }
    if (f[waves] < 1.51) {
        if (f[comm_over_latency] < 37.2) {
            if (f[comm_over_gemm_cu] < 2.24) {
                return advice_of(2, uncut, 0, least);  // shard_p2p by dma
            }
            return advice_of(19, balanced, 0.25, least);  // uniform_fused_2d by cu, chunks ~ sqrt(shorter / 0.25 latencies)
        }
        return advice_of(21, estimated, 0, least);  // hetero_fused_2d by cu, chunks by estimate
    }
    if (f[intensity] < 7.69) {
        if (f[operand_over_gemm] < 0.0176) {
            return advice_of(19, estimated, 0, least);  // uniform_fused_2d by cu, chunks by estimate
        }
        if (f[output_over_gemm] < 0.1146) {
            return advice_of(19, estimated, 0, least);  // uniform_fused_2d by cu, chunks by estimate
        }
        return advice_of(6, fixed, 2, least);  // ring_chunked gemm=chunk by dma, 2 chunks
    }
    return advice_of(2, uncut, 0, least);  // shard_p2p by dma
}

/// The schedule to run if the GEMM may be a kernel that polls or sets flags (flag_gated).
inline Advice advise_any(const Machine& machine, const Operator& op) {
    const Estimates least(machine, op, true);
    const Features f = features(least);
    if (f[waves] < 0.732) {
        if (f[m_over_n] < 0.225) {
            return advice_of(27, balanced, 0.25, least);  // flag_gated by cu, chunks ~ sqrt(shorter / 0.25 latencies)
        }
        return advice_of(2, uncut, 0, least);  // shard_p2p by dma
    }
    if (f[columns_over_best] < 1.353) {
        return advice_of(26, fixed, 1, least);  // flag_gated by dma, 1 chunks
    }
    return advice_of(11, estimated, 0, least);  // uniform_fused_1d by cu, chunks by estimate
}

}  // namespace overlap_advice
// clang-format on

#endif
