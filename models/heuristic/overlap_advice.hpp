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
    if (f[push_over_pull] < 1.001) {
        return advice_of(23, by_waves, 4, least);  // uniform_unfused_2d by cu, steps of 4 waves or more
    }
    if (f[dma_over_kernels] < 0.9768) {
        if (f[dma_over_kernels] < 0.832) {
            return advice_of(2, uncut, 0, least);  // shard_p2p by dma
        }
        if (f[comm_over_gemm_cu] < 1.41) {
            return advice_of(2, uncut, 0, least);  // shard_p2p by dma
        }
        return advice_of(6, balanced, 4, least);  // ring_chunked gemm=chunk by dma, chunks ~ sqrt(shorter / 4 latencies)
    }
    return advice_of(11, by_size, 0.5, least);  // uniform_fused_1d by cu, transfers of 0.5 latencies or more
}

/// The same where the GEMM may be a kernel of one's own that polls or sets flags (flag_gated).
inline Advice advise_any(const Machine& machine, const Operator& op) {
    const Estimates least(machine, op, true);
    const Features f = features(least);
    if (f[push_over_pull] < 1) {
        if (f[operand_over_gemm] < 0.0262) {
            return advice_of(27, balanced, 0.125, least);  // flag_gated by cu, chunks ~ sqrt(shorter / 0.125 latencies)
        }
        return advice_of(15, by_waves, 4, least);  // uniform_unfused_1d by cu, steps of 4 waves or more
    }
    if (f[fused_over_best] < 1.133) {
        if (f[gemm_over_latency] < 3.29) {
            return advice_of(11, estimated, 0, least);  // uniform_fused_1d by cu, chunks by estimate
        }
        return advice_of(26, fixed, 1, least);  // flag_gated by dma, 1 chunks
    }
    return advice_of(26, fixed, 2, least);  // flag_gated by dma, 2 chunks
}

}  // namespace overlap_advice
// clang-format on

#endif
