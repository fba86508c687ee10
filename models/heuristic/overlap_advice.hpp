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
    if (f[gemm_over_latency] < 25.12) {
        if (f[dma_over_kernels] < 0.9986) {
            return advice_of(6, fixed, 2, least);  // ring_chunked gemm=chunk by dma, 2 chunks
        }
        return advice_of(11, by_size, 0.5, least);  // uniform_fused_1d by cu, transfers of 0.5 latencies or more
    }
    if (f[columns_over_best] < 1.0004) {
        return advice_of(19, estimated, 0, least);  // uniform_fused_2d by cu, chunks by estimate
    }
    if (f[intensity] < 4.28) {
        return advice_of(23, by_waves, 4, least);  // uniform_unfused_2d by cu, steps of 4 waves or more
    }
    return advice_of(2, uncut, 0, least);  // shard_p2p by dma
}

/// The schedule to run if the GEMM may be a kernel that polls or sets flags (flag_gated).
inline Advice advise_any(const Machine& machine, const Operator& op) {
    const Estimates least(machine, op, true);
    const Features f = features(least);
    if (f[intensity] < 2.21) {
        if (f[intensity] < 1.692) {
            return advice_of(27, balanced, 0.125, least);  // flag_gated by cu, chunks ~ sqrt(shorter / 0.125 latencies)
        }
        return advice_of(11, estimated, 0, least);  // uniform_fused_1d by cu, chunks by estimate
    }
    if (f[comm_over_gemm_cu] < 1.2929) {
        if (f[columns_over_best] < 1.0004) {
            return advice_of(19, estimated, 0, least);  // uniform_fused_2d by cu, chunks by estimate
        }
        if (f[p2p_over_best] < 2.63) {
            if (f[shard_over_launch] < 70.793) {
                if (f[dma_over_kernels] < 1.0012) {
                    return advice_of(6, fixed, 2, least);  // ring_chunked gemm=chunk by dma, 2 chunks
                }
                return advice_of(26, fixed, 1, least);  // flag_gated by dma, 1 chunks
            }
            return advice_of(26, fixed, 1, least);  // flag_gated by dma, 1 chunks
        }
        return advice_of(13, balanced, 1, least);  // hetero_fused_1d by cu, chunks ~ sqrt(shorter / 1 latencies)
    }
    if (f[output_over_gemm] < 0.19) {
        if (f[shard_over_launch] < 77.5) {
            if (f[operand_over_gemm] < 0.0142) {
                return advice_of(27, balanced, 0.125, least);  // flag_gated by cu, chunks ~ sqrt(shorter / 0.125 latencies)
            }
            if (f[p2p_over_best] < 1.9) {
                return advice_of(6, fixed, 2, least);  // ring_chunked gemm=chunk by dma, 2 chunks
            }
            return advice_of(7, estimated, 0, least);  // ring_chunked gemm=chunk by cu, chunks by estimate
        }
        return advice_of(2, uncut, 0, least);  // shard_p2p by dma
    }
    return advice_of(27, fixed, 2, least);  // flag_gated by cu, 2 chunks
}

}  // namespace overlap_advice
// clang-format on

#endif
