// Made by `sim advise --fit models/heuristic/fit.csv`; do not edit. Needs nothing but the standard
// library (C++11) and the files beside it.
#ifndef OVERLAP_ADVICE_HPP
#define OVERLAP_ADVICE_HPP

#include "overlap_features.hpp"

// clang-format off
namespace overlap_advice {

/// Which schedule of library GEMMs and copies to run.
inline Advice advise_library(const Machine& machine, const Operator& op) {
    const Estimates least(machine, op, false);
    const Features f = features(least);
    if (f[p2p_over_best] < 1.0347) {
        if (f[kernels_wait] < 0.5) {
            return advice_of(12, estimated, 0, least);  // hetero_fused_1d by dma, chunks by estimate
        }
        if (f[dma_over_cu] < 0.886) {
            if (f[comm_over_gemm_dma] < 2.53) {
                return advice_of(2, uncut, 0, least);  // shard_p2p by dma
            }
            return advice_of(6, balanced, 2, least);  // ring_chunked gemm=chunk by dma, chunks ~ sqrt(shorter / 2 latencies)
        }
        if (f[m_over_k] < 0.61) {
            return advice_of(4, by_size, 2, least);  // ring_chunked by dma, transfers of 2 latencies or more
        }
        if (f[comm_over_gemm_dma] < 0.255) {
            return advice_of(16, estimated, 0, least);  // hetero_unfused_1d by dma, chunks by estimate
        }
        return advice_of(14, by_size, 16, least);  // uniform_unfused_1d by dma, transfers of 16 latencies or more
    }
    if (f[one_peer_over_direct] < 1.03) {
        if (f[comm_over_latency] < 46.3) {
            return advice_of(19, fixed, 4, least);  // uniform_fused_2d by cu, 4 chunks
        }
        return advice_of(23, by_waves, 4, least);  // uniform_unfused_2d by cu, steps of 4 waves or more
    }
    return advice_of(11, by_size, 0.5, least);  // uniform_fused_1d by cu, transfers of 0.5 latencies or more
}

/// The same where the GEMM may be a kernel of one's own that polls or sets flags (flag_gated).
inline Advice advise_any(const Machine& machine, const Operator& op) {
    const Estimates least(machine, op, true);
    const Features f = features(least);
    if (f[intensity] < 2.2) {
        if (f[intensity] < 1.72) {
            return advice_of(27, balanced, 0.125, least);  // flag_gated by cu, chunks ~ sqrt(shorter / 0.125 latencies)
        }
        if (f[dma_over_cu] < 0.597) {
            return advice_of(11, estimated, 0, least);  // uniform_fused_1d by cu, chunks by estimate
        }
        return advice_of(26, fixed, 2, least);  // flag_gated by dma, 2 chunks
    }
    if (f[comm_over_gemm_cu] < 1.562) {
        if (f[dma_over_kernels] < 0.8465) {
            if (f[shard_over_launch] < 52.7) {
                return advice_of(26, fixed, 2, least);  // flag_gated by dma, 2 chunks
            }
            return advice_of(6, balanced, 2, least);  // ring_chunked gemm=chunk by dma, chunks ~ sqrt(shorter / 2 latencies)
        }
        return advice_of(26, fixed, 1, least);  // flag_gated by dma, 1 chunks
    }
    if (f[ring_over_direct] < 1.05) {
        return advice_of(27, fixed, 4, least);  // flag_gated by cu, 4 chunks
    }
    if (f[comm_over_latency] < 99.3) {
        if (f[shard_over_launch] < 6.98) {
            return advice_of(27, balanced, 0.125, least);  // flag_gated by cu, chunks ~ sqrt(shorter / 0.125 latencies)
        }
        return advice_of(6, balanced, 2, least);  // ring_chunked gemm=chunk by dma, chunks ~ sqrt(shorter / 2 latencies)
    }
    return advice_of(26, fixed, 1, least);  // flag_gated by dma, 1 chunks
}

}  // namespace overlap_advice
// clang-format on

#endif
