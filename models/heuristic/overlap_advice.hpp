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
    if (f[intensity] < 4.49) {
        if (f[gemm_over_latency] < 8.9472) {
            return advice_of(11, by_size, 0.5, least);  // uniform_fused_1d by cu, transfers of 0.5 latencies or more
        }
        return advice_of(23, by_waves, 4, least);  // uniform_unfused_2d by cu, steps of 4 waves or more
    }
    if (f[columns_over_best] < 1.0001) {
        return advice_of(19, estimated, 0, least);  // uniform_fused_2d by cu, chunks by estimate
    }
    return advice_of(2, uncut, 0, least);  // shard_p2p by dma
}

/// The schedule to run if the GEMM may be a kernel that polls or sets flags (flag_gated).
inline Advice advise_any(const Machine& machine, const Operator& op) {
    const Estimates least(machine, op, true);
    const Features f = features(least);
    if (f[kernels_wait] < 0.5) {
        if (f[m_over_n] < 1.8) {
            if (f[output_over_gemm] < 0.127) {
                if (f[comm_over_latency] < 145) {
                    if (f[push_over_pull] < 1) {
                        return advice_of(27, balanced, 0.125, least);  // flag_gated by cu, chunks ~ sqrt(shorter / 0.125 latencies)
                    }
                    return advice_of(26, balanced, 4, least);  // flag_gated by dma, chunks ~ sqrt(shorter / 4 latencies)
                }
                return advice_of(12, estimated, 0, least);  // hetero_fused_1d by dma, chunks by estimate
            }
            return advice_of(27, fixed, 2, least);  // flag_gated by cu, 2 chunks
        }
        if (f[gemm_over_latency] < 86.5) {
            if (f[shard_waves] < 0.743) {
                return advice_of(7, estimated, 0, least);  // ring_chunked gemm=chunk by cu, chunks by estimate
            }
            if (f[operand_over_gemm] < 0.0458) {
                return advice_of(19, by_size, 4, least);  // uniform_fused_2d by cu, transfers of 4 latencies or more
            }
            return advice_of(27, fixed, 4, least);  // flag_gated by cu, 4 chunks
        }
        return advice_of(15, by_waves, 4, least);  // uniform_unfused_1d by cu, steps of 4 waves or more
    }
    if (f[dma_over_kernels] < 0.8518) {
        return advice_of(26, fixed, 2, least);  // flag_gated by dma, 2 chunks
    }
    if (f[intensity] < 2.12) {
        return advice_of(11, fixed, 1, least);  // uniform_fused_1d by cu, 1 chunks
    }
    return advice_of(26, estimated, 0, least);  // flag_gated by dma, chunks by estimate
}

}  // namespace overlap_advice
// clang-format on

#endif
