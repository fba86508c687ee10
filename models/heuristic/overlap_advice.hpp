// Made by `sim advise --fit models/heuristic/fit.csv`; do not edit. Needs nothing but the standard
// library (C++11) and the two files beside it.
#ifndef OVERLAP_ADVICE_HPP
#define OVERLAP_ADVICE_HPP

#include "overlap_features.hpp"

// clang-format off
namespace overlap_advice {

/// Which schedule of library GEMMs and copies to run.
inline Advice advise_library(const Machine& machine, const Operator& op) {
    const Estimates least(machine, op, false);
    const Features f = features(machine, op, least);
    if (f[shard_over_launch] < 18.15) {
        if (f[tokens_in_k] < 0.5) {
            if (f[p2p_over_best] < 1.02) {
                if (f[shard_waves] < 0.193) {
                    return advice_of(2, uncut, 0, machine, op, least);  // shard_p2p by dma
                }
                return advice_of(9, uncut, 0, machine, op, least);  // shard_direct by cu
            }
            if (f[columns_over_best] < 1.0164) {
                return advice_of(19, estimated, 0, machine, op, least);  // uniform_fused_2d by cu, chunks by estimate
            }
            return advice_of(5, fixed, 2, machine, op, least);  // ring_chunked by cu, 2 chunks
        }
        if (f[p2p_over_best] < 3.876) {
            if (f[output_over_gemm] < 0.1044) {
                return advice_of(24, balanced, 2, machine, op, least);  // hetero_unfused_2d by dma, chunks ~ sqrt(shorter / 2 latencies)
            }
            return advice_of(11, balanced, 0.5, machine, op, least);  // uniform_fused_1d by cu, chunks ~ sqrt(shorter / 0.5 latencies)
        }
        return advice_of(12, estimated, 0, machine, op, least);  // hetero_fused_1d by dma, chunks by estimate
    }
    if (f[p2p_over_best] < 1.045) {
        if (f[comm_over_gemm_cu] < 0.837) {
            return advice_of(2, uncut, 0, machine, op, least);  // shard_p2p by dma
        }
        if (f[comm_over_gemm_cu] < 1.286) {
            return advice_of(24, balanced, 2, machine, op, least);  // hetero_unfused_2d by dma, chunks ~ sqrt(shorter / 2 latencies)
        }
        return advice_of(6, balanced, 2, machine, op, least);  // ring_chunked gemm=chunk by dma, chunks ~ sqrt(shorter / 2 latencies)
    }
    if (f[p2p_over_best] < 1.544) {
        if (f[intensity] < 2.95) {
            return advice_of(15, fixed, 8, machine, op, least);  // uniform_unfused_1d by cu, 8 chunks
        }
        if (f[shard_waves] < 3.17) {
            if (f[m_over_k] < 0.833) {
                return advice_of(2, uncut, 0, machine, op, least);  // shard_p2p by dma
            }
            return advice_of(24, balanced, 2, machine, op, least);  // hetero_unfused_2d by dma, chunks ~ sqrt(shorter / 2 latencies)
        }
        return advice_of(7, fixed, 2, machine, op, least);  // ring_chunked gemm=chunk by cu, 2 chunks
    }
    if (f[p2p_over_best] < 3.78) {
        return advice_of(7, fixed, 2, machine, op, least);  // ring_chunked gemm=chunk by cu, 2 chunks
    }
    return advice_of(12, estimated, 0, machine, op, least);  // hetero_fused_1d by dma, chunks by estimate
}

/// The same where the GEMM may be a kernel of one's own that polls or sets flags (flag_gated).
inline Advice advise_any(const Machine& machine, const Operator& op) {
    const Estimates least(machine, op, true);
    const Features f = features(machine, op, least);
    if (f[shard_waves] < 0.106) {
        if (f[copy_share] < 0.201) {
            if (f[n_over_k] < 0.673) {
                return advice_of(7, fixed, 2, machine, op, least);  // ring_chunked gemm=chunk by cu, 2 chunks
            }
            if (f[comm_over_gemm_dma] < 1.62) {
                return advice_of(27, fixed, 4, machine, op, least);  // flag_gated by cu, 4 chunks
            }
            return advice_of(5, fixed, 2, machine, op, least);  // ring_chunked by cu, 2 chunks
        }
        if (f[comm_over_gemm_cu] < 0.989) {
            return advice_of(26, balanced, 0.125, machine, op, least);  // flag_gated by dma, chunks ~ sqrt(shorter / 0.125 latencies)
        }
        if (f[dma_over_cu] < 0.812) {
            return advice_of(27, balanced, 1, machine, op, least);  // flag_gated by cu, chunks ~ sqrt(shorter / 1 latencies)
        }
        return advice_of(26, balanced, 0.25, machine, op, least);  // flag_gated by dma, chunks ~ sqrt(shorter / 0.25 latencies)
    }
    if (f[comm_over_gemm_cu] < 1.2846) {
        if (f[n_over_k] < 0.906) {
            if (f[ring_over_direct] < 1.13) {
                return advice_of(26, balanced, 1, machine, op, least);  // flag_gated by dma, chunks ~ sqrt(shorter / 1 latencies)
            }
            if (f[comm_over_gemm_dma] < 0.567) {
                return advice_of(26, balanced, 0.125, machine, op, least);  // flag_gated by dma, chunks ~ sqrt(shorter / 0.125 latencies)
            }
            return advice_of(2, uncut, 0, machine, op, least);  // shard_p2p by dma
        }
        if (f[output_over_gemm] < 0.14183) {
            if (f[shard_waves] < 0.862) {
                return advice_of(26, balanced, 1, machine, op, least);  // flag_gated by dma, chunks ~ sqrt(shorter / 1 latencies)
            }
            return advice_of(26, balanced, 1, machine, op, least);  // flag_gated by dma, chunks ~ sqrt(shorter / 1 latencies)
        }
        return advice_of(11, balanced, 1, machine, op, least);  // uniform_fused_1d by cu, chunks ~ sqrt(shorter / 1 latencies)
    }
    if (f[p2p_over_best] < 1.059) {
        if (f[shard_over_launch] < 19.9) {
            return advice_of(27, balanced, 1, machine, op, least);  // flag_gated by cu, chunks ~ sqrt(shorter / 1 latencies)
        }
        return advice_of(6, balanced, 2, machine, op, least);  // ring_chunked gemm=chunk by dma, chunks ~ sqrt(shorter / 2 latencies)
    }
    if (f[copy_share] < 0.201) {
        return advice_of(7, fixed, 2, machine, op, least);  // ring_chunked gemm=chunk by cu, 2 chunks
    }
    return advice_of(26, balanced, 0.125, machine, op, least);  // flag_gated by dma, chunks ~ sqrt(shorter / 0.125 latencies)
}

}  // namespace overlap_advice
// clang-format on

#endif
