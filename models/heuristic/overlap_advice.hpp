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
    if (f[gemm_over_latency] < 23.739) {
        if (f[comm_over_latency] < 11) {
            if (f[comm_over_latency] < 4.02) {
                if (f[p2p_over_best] < 1.53) {
                    return advice_of(2, uncut, 0, least);  // shard_p2p by dma
                }
                if (f[dma_over_kernels] < 1.249) {
                    return advice_of(1, uncut, 0, least);  // serial by cu
                }
                return advice_of(11, estimated, 0, least);  // uniform_fused_1d by cu, chunks by estimate
            }
            return advice_of(20, estimated, 0, least);  // hetero_fused_2d by dma, chunks by estimate
        }
        if (f[push_over_pull] < 1) {
            return advice_of(19, balanced, 0.25, least);  // uniform_fused_2d by cu, chunks ~ sqrt(shorter / 0.25 latencies)
        }
        return advice_of(6, fixed, 2, least);  // ring_chunked gemm=chunk by dma, 2 chunks
    }
    if (f[output_over_gemm] < 0.0767) {
        if (f[m_over_n] < 8.43) {
            if (f[intensity] < 5.56) {
                return advice_of(15, estimated, 0, least);  // uniform_unfused_1d by cu, chunks by estimate
            }
            if (f[push_over_pull] < 1.003) {
                return advice_of(24, estimated, 0, least);  // hetero_unfused_2d by dma, chunks by estimate
            }
            if (f[dma_over_cu] < 0.68) {
                return advice_of(12, fixed, 8, least);  // hetero_fused_1d by dma, 8 chunks
            }
            return advice_of(2, uncut, 0, least);  // shard_p2p by dma
        }
        return advice_of(14, by_size, 16, least);  // uniform_unfused_1d by dma, transfers of 16 latencies or more
    }
    if (f[comm_over_gemm_dma] < 2.146) {
        return advice_of(19, estimated, 0, least);  // uniform_fused_2d by cu, chunks by estimate
    }
    return advice_of(16, balanced, 4, least);  // hetero_unfused_1d by dma, chunks ~ sqrt(shorter / 4 latencies)
}

/// The schedule to run if the GEMM may be a kernel that polls or sets flags (flag_gated).
inline Advice advise_any(const Machine& machine, const Operator& op) {
    const Estimates least(machine, op, true);
    const Features f = features(least);
    if (f[m_over_n] < 4.29) {
        if (f[push_over_pull] < 1.003) {
            if (f[serial_over_best] < 1.215) {
                return advice_of(19, balanced, 0.25, least);  // uniform_fused_2d by cu, chunks ~ sqrt(shorter / 0.25 latencies)
            }
            if (f[dma_over_kernels] < 1.0136) {
                return advice_of(7, estimated, 0, least);  // ring_chunked gemm=chunk by cu, chunks by estimate
            }
            return advice_of(27, by_size, 2, least);  // flag_gated by cu, transfers of 2 latencies or more
        }
        if (f[output_over_gemm] < 0.26) {
            if (f[operand_over_gemm] < 0.05014) {
                return advice_of(26, estimated, 0, least);  // flag_gated by dma, chunks by estimate
            }
            return advice_of(2, uncut, 0, least);  // shard_p2p by dma
        }
        if (f[gemm_over_latency] < 2.11) {
            return advice_of(11, estimated, 0, least);  // uniform_fused_1d by cu, chunks by estimate
        }
        return advice_of(6, balanced, 2, least);  // ring_chunked gemm=chunk by dma, chunks ~ sqrt(shorter / 2 latencies)
    }
    if (f[push_over_pull] < 1.003) {
        return advice_of(13, fixed, 4, least);  // hetero_fused_1d by cu, 4 chunks
    }
    if (f[shard_waves] < 3.03) {
        return advice_of(6, balanced, 2, least);  // ring_chunked gemm=chunk by dma, chunks ~ sqrt(shorter / 2 latencies)
    }
    return advice_of(26, estimated, 0, least);  // flag_gated by dma, chunks by estimate
}

}  // namespace overlap_advice
// clang-format on

#endif
