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
            if (f[columns_over_best] < 1.04) {
                return advice_of(19, estimated, 0, machine, op, least);  // uniform_fused_2d by cu, chunks by estimate
            }
            return advice_of(5, fixed, 2, machine, op, least);  // ring_chunked by cu, 2 chunks
        }
        if (f[serial_over_best] < 1.002) {
            return advice_of(11, balanced, 0.5, machine, op, least);  // uniform_fused_1d by cu, chunks ~ sqrt(shorter / 0.5 latencies)
        }
        return advice_of(15, fixed, 8, machine, op, least);  // uniform_unfused_1d by cu, 8 chunks
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
    if (f[shard_waves] < 1.32) {
        if (f[operand_over_gemm] < 0.04) {
            if (f[dma_over_cu] < 0.999) {
                return advice_of(2, uncut, 0, machine, op, least);  // shard_p2p by dma
            }
            return advice_of(7, fixed, 2, machine, op, least);  // ring_chunked gemm=chunk by cu, 2 chunks
        }
        return advice_of(7, fixed, 2, machine, op, least);  // ring_chunked gemm=chunk by cu, 2 chunks
    }
    if (f[p2p_over_best] < 2.75) {
        if (f[waves] < 3.17) {
            return advice_of(7, fixed, 2, machine, op, least);  // ring_chunked gemm=chunk by cu, 2 chunks
        }
        if (f[one_peer_over_direct] < 0.767) {
            return advice_of(6, balanced, 8, machine, op, least);  // ring_chunked gemm=chunk by dma, chunks ~ sqrt(shorter / 8 latencies)
        }
        return advice_of(15, fixed, 8, machine, op, least);  // uniform_unfused_1d by cu, 8 chunks
    }
    return advice_of(12, balanced, 2, machine, op, least);  // hetero_fused_1d by dma, chunks ~ sqrt(shorter / 2 latencies)
}

/// The same where the GEMM may be a kernel of one's own that polls or sets flags (flag_gated).
inline Advice advise_any(const Machine& machine, const Operator& op) {
    const Estimates least(machine, op, true);
    const Features f = features(machine, op, least);
    if (f[comm_over_gemm_cu] < 1.19) {
        if (f[p2p_over_best] < 1.00836) {
            if (f[gemm_first] < 0.5) {
                return advice_of(2, uncut, 0, machine, op, least);  // shard_p2p by dma
            }
            if (f[intensity] < 4.85) {
                return advice_of(27, balanced, 1, machine, op, least);  // flag_gated by cu, chunks ~ sqrt(shorter / 1 latencies)
            }
            return advice_of(26, fixed, 4, machine, op, least);  // flag_gated by dma, 4 chunks
        }
        if (f[comm_over_latency] < 7.47) {
            if (f[comm_over_gemm_cu] < 0.688) {
                return advice_of(26, by_size, 2, machine, op, least);  // flag_gated by dma, transfers of 2 latencies or more
            }
            return advice_of(11, balanced, 1, machine, op, least);  // uniform_fused_1d by cu, chunks ~ sqrt(shorter / 1 latencies)
        }
        if (f[comm_over_gemm_dma] < 0.752) {
            return advice_of(26, fixed, 4, machine, op, least);  // flag_gated by dma, 4 chunks
        }
        if (f[serial_over_best] < 1.285) {
            return advice_of(26, fixed, 2, machine, op, least);  // flag_gated by dma, 2 chunks
        }
        if (f[waves] < 0.734) {
            return advice_of(27, fixed, 4, machine, op, least);  // flag_gated by cu, 4 chunks
        }
        return advice_of(26, by_size, 1, machine, op, least);  // flag_gated by dma, transfers of 1 latencies or more
    }
    if (f[m_over_n] < 0.258) {
        if (f[comm_over_latency] < 10.1) {
            return advice_of(27, balanced, 1, machine, op, least);  // flag_gated by cu, chunks ~ sqrt(shorter / 1 latencies)
        }
        return advice_of(5, fixed, 2, machine, op, least);  // ring_chunked by cu, 2 chunks
    }
    if (f[dma_over_kernels] < 1.00467) {
        if (f[shard_over_launch] < 52.5) {
            return advice_of(6, fixed, 2, machine, op, least);  // ring_chunked gemm=chunk by dma, 2 chunks
        }
        return advice_of(6, fixed, 4, machine, op, least);  // ring_chunked gemm=chunk by dma, 4 chunks
    }
    if (f[serial_over_best] < 1.002) {
        return advice_of(11, balanced, 1, machine, op, least);  // uniform_fused_1d by cu, chunks ~ sqrt(shorter / 1 latencies)
    }
    if (f[p2p_over_best] < 1.0723) {
        return advice_of(27, fixed, 8, machine, op, least);  // flag_gated by cu, 8 chunks
    }
    return advice_of(7, fixed, 2, machine, op, least);  // ring_chunked gemm=chunk by cu, 2 chunks
}

}  // namespace overlap_advice
// clang-format on

#endif
