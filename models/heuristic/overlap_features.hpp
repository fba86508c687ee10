// Features that the static heuristic of overlap_advice.hpp decides by. Needs only the standard library
// (C++11), so a framework can copy the headers.
#ifndef OVERLAP_FEATURES_HPP
#define OVERLAP_FEATURES_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "overlap_estimate.hpp"

namespace overlap_advice {

enum Feature {
    comm_over_gemm_dma,    ///< time of the transfers by DMA over the GEMM's time, each alone
    comm_over_gemm_cu,     ///< the same with copies by kernels
    dma_over_cu,           ///< rate of DMA over that of kernels
    push_over_pull,        ///< rate of pushes over that of pulls, by DMA
    ring_over_direct,      ///< rate around the ring over that of all peers at once
    one_peer_over_direct,  ///< rate with one peer at a time over that of all peers at once
    comm_over_latency,     ///< time of the faster transfers over their own fixed time
    gemm_over_latency,     ///< time of the GEMM over the fixed time of those transfers
    shard_over_launch,     ///< time of a shard's part of the GEMM over a kernel launch
    waves,                 ///< 256x256 tiles of C over compute units
    shard_waves,           ///< the same for one shard's part (rows, or slabs of K)
    m_over_k,
    m_over_n,
    n_over_k,
    intensity,          ///< time of the FLOPs over that of operands and result through HBM
    output_over_gemm,   ///< C written once through HBM over the time of the GEMM
    operand_over_gemm,  ///< A copied once through HBM over the time of the GEMM
    copy_share,         ///< fraction of all compute units that copy kernels hold
    gemm_first,
    tokens_in_k,
    all_to_all,
    all_reduce,
    gpus,
    serial_over_best,   ///< estimate of serial over the smallest of all estimates
    fused_over_best,    ///< the same for hetero_fused_1d, by DMA or kernels
    columns_over_best,  ///< for uniform_fused_2d or hetero_fused_2d
    p2p_over_best,      ///< for shard_p2p
    dma_over_kernels,   ///< smallest estimate by DMA over the smallest by kernels
    kernels_wait,
    feature_count
};

typedef std::array<double, feature_count> Features;

inline const char* name_of(std::size_t feature) {
    static const char* const names[feature_count] = {"comm_over_gemm_dma",
                                                     "comm_over_gemm_cu",
                                                     "dma_over_cu",
                                                     "push_over_pull",
                                                     "ring_over_direct",
                                                     "one_peer_over_direct",
                                                     "comm_over_latency",
                                                     "gemm_over_latency",
                                                     "shard_over_launch",
                                                     "waves",
                                                     "shard_waves",
                                                     "m_over_k",
                                                     "m_over_n",
                                                     "n_over_k",
                                                     "intensity",
                                                     "output_over_gemm",
                                                     "operand_over_gemm",
                                                     "copy_share",
                                                     "gemm_first",
                                                     "tokens_in_k",
                                                     "all_to_all",
                                                     "all_reduce",
                                                     "gpus",
                                                     "serial_over_best",
                                                     "fused_over_best",
                                                     "columns_over_best",
                                                     "p2p_over_best",
                                                     "dma_over_kernels",
                                                     "kernels_wait"};
    return names[feature];
}

/// A schedule and the agent of its transfers. DMA copies go in their faster direction.
struct NamedPlan {
    const char* schedule;
    const char* gemm;  ///< ring_chunked: one GEMM a shard or a chunk; else empty
    Plan plan;
};

constexpr std::size_t plan_count = 28;

/// All plans, each by DMA and by kernels. flag_gated, which needs kernels that poll flags, comes last.
inline const std::array<NamedPlan, plan_count>& plans() {
    static const std::array<NamedPlan, plan_count> table = {{
        {"serial", "", {serial, false, false, false, false}},
        {"serial", "", {serial, false, false, false, true}},
        {"shard_p2p", "", {shard_p2p, false, false, false, false}},
        {"shard_p2p", "", {shard_p2p, false, false, false, true}},
        {"ring_chunked", "", {ring_shard, false, false, false, false}},
        {"ring_chunked", "", {ring_shard, false, false, false, true}},
        {"ring_chunked", "chunk", {ring_chunk, false, false, false, false}},
        {"ring_chunked", "chunk", {ring_chunk, false, false, false, true}},
        {"shard_direct", "", {shard_direct, false, false, false, false}},
        {"shard_direct", "", {shard_direct, false, false, false, true}},
        {"uniform_fused_1d", "", {pieces, false, true, false, false}},
        {"uniform_fused_1d", "", {pieces, false, true, false, true}},
        {"hetero_fused_1d", "", {pieces, true, true, false, false}},
        {"hetero_fused_1d", "", {pieces, true, true, false, true}},
        {"uniform_unfused_1d", "", {pieces, false, false, false, false}},
        {"uniform_unfused_1d", "", {pieces, false, false, false, true}},
        {"hetero_unfused_1d", "", {pieces, true, false, false, false}},
        {"hetero_unfused_1d", "", {pieces, true, false, false, true}},
        {"uniform_fused_2d", "", {pieces, false, true, true, false}},
        {"uniform_fused_2d", "", {pieces, false, true, true, true}},
        {"hetero_fused_2d", "", {pieces, true, true, true, false}},
        {"hetero_fused_2d", "", {pieces, true, true, true, true}},
        {"uniform_unfused_2d", "", {pieces, false, false, true, false}},
        {"uniform_unfused_2d", "", {pieces, false, false, true, true}},
        {"hetero_unfused_2d", "", {pieces, true, false, true, false}},
        {"hetero_unfused_2d", "", {pieces, true, false, true, true}},
        {"flag_gated", "", {flag_gated, false, false, false, false}},
        {"flag_gated", "", {flag_gated, false, false, false, true}},
    }};
    return table;
}

/// Whether a schedule can run an operator, as in `sim`: rings can't forward an all-to-all; with the tokens in
/// K every tile of a gated GEMM would wait for every piece; and copy kernels that wait for all units of a GEMM
/// deadlock if that GEMM waits for them.
inline bool serves(const GemmPrices& gemms, const Plan& plan) {
    const Machine& machine = gemms.machine();
    const Operator& op = gemms.op();
    if (plan.style == ring_shard || plan.style == ring_chunk) return !op.all_to_all;
    if (plan.style != flag_gated) return true;
    if (!plan.by_kernels || !machine.kernels_wait || op.gemm_first) return !op.tokens_in_k;
    return !op.tokens_in_k && leaves_units(gemms(op.m, op.n, op.k, false, true), machine);
}

inline bool cuts_shards(const Plan& plan) {
    return plan.style != serial && plan.style != shard_p2p && plan.style != shard_direct;
}

/// A single column block is the uncut shard.
inline int least_chunks(const Plan& plan) {
    return plan.columns ? 2 : 1;
}

/// The smallest estimates, over all plans and over some kinds of plans.
struct Estimates {
    Estimator time;
    double best, serial_time, fused, columns, one_peer, dma, kernels;
    std::size_t best_plan;

    Estimates(const Machine& machine, const Operator& op, bool own_kernels)
        : time(machine, op),
          best(1e300),
          serial_time(1e300),
          fused(1e300),
          columns(1e300),
          one_peer(1e300),
          dma(1e300),
          kernels(1e300),
          best_plan(0) {
        for (std::size_t i = 0; i < plan_count; ++i) {
            const Plan& plan = plans()[i].plan;
            if (!serves(time.gemms, plan) || (plan.style == flag_gated && !own_kernels)) continue;
            const double took = time(plan, time.chunks(plan, least_chunks(plan)));
            if (took < best) best_plan = i;
            best = std::min(best, took);
            double& agent = plan.by_kernels ? kernels : dma;
            agent = std::min(agent, took);
            if (plan.style == serial) serial_time = std::min(serial_time, took);
            if (plan.style == shard_p2p) one_peer = std::min(one_peer, took);
            if (plan.style != pieces || !plan.fused) continue;
            double& shape = plan.columns ? columns : fused;
            shape = std::min(shape, took);
        }
    }
};

inline Features features(const Estimates& least) {
    const Machine& machine = least.time.gemms.machine();
    const Operator& op = least.time.gemms.op();
    const double gemm = least.time.gemms.whole(), bytes = received(machine, op);
    const Copies &dma = machine.dma, &kernels = machine.kernels;
    const double dma_rate = std::max(dma.pull.rate, dma.push.rate), kernel_rate = kernels.push.rate;
    const double by_dma = bytes / dma_rate + dma.latency();
    const double by_kernels = bytes / kernel_rate + kernels.latency();
    const double latency = machine.copies(by_dma >= by_kernels).latency();
    const double direct = std::max(dma_rate, kernel_rate);
    const double tiles = std::ceil(op.m / 256) * std::ceil(op.n / 256) / machine.compute_units;
    const double operands = op.operand_size * (op.m + op.n) * op.k, result = op.output_size * op.m * op.n;
    Features f;
    f[comm_over_gemm_dma] = by_dma / gemm;
    f[comm_over_gemm_cu] = by_kernels / gemm;
    f[dma_over_cu] = dma_rate / kernel_rate;
    f[push_over_pull] = dma.push.rate / dma.pull.rate;
    f[ring_over_direct] = std::max(dma.ring_rate, kernels.ring_rate) / direct;
    f[one_peer_over_direct] = std::max(dma.peer_rate, kernels.peer_rate) / direct;
    f[comm_over_latency] = std::min(by_dma, by_kernels) / latency;
    f[gemm_over_latency] = gemm / latency;
    f[shard_over_launch] = gemm / machine.gpus / machine.launch;
    f[waves] = tiles;
    f[shard_waves] = op.tokens_in_k ? tiles : tiles / machine.gpus;
    f[m_over_k] = op.m / op.k;
    f[m_over_n] = op.m / op.n;
    f[n_over_k] = op.n / op.k;
    f[intensity] =
        (2 * op.m * op.n * op.k / machine.gemm.peak_rate) / ((operands + result) / machine.hbm_rate);
    f[output_over_gemm] = result / machine.hbm_rate / gemm;
    f[operand_over_gemm] = op.operand_size * op.m * op.k / machine.hbm_rate / gemm;
    f[copy_share] = kernels.units / machine.compute_units;
    f[gemm_first] = op.gemm_first ? 1 : 0;
    f[tokens_in_k] = op.tokens_in_k ? 1 : 0;
    f[all_to_all] = op.all_to_all ? 1 : 0;
    f[all_reduce] = op.all_reduce ? 1 : 0;
    f[gpus] = machine.gpus;
    f[serial_over_best] = least.serial_time / least.best;
    f[fused_over_best] = least.fused / least.best;
    f[columns_over_best] = least.columns / least.best;
    f[p2p_over_best] = least.one_peer / least.best;
    f[dma_over_kernels] = least.dma / least.kernels;
    f[kernels_wait] = machine.kernels_wait ? 1 : 0;
    return f;
}

/// How a leaf of the heuristic chooses the chunks of a shard: always `x`, or a power of two from 1 to 16 that
/// depends on the operator.
enum ChunkRule {
    uncut,      ///< the schedule does not cut shards
    fixed,      ///< x chunks
    estimated,  ///< the number with the smallest estimate
    /// Near sqrt(shorter / (x * fixed time of the transfers)): balances fill and drain with overheads
    balanced,
    by_waves,  ///< the largest number whose GEMM steps have x waves of tiles or more
    by_size    ///< the largest number whose transfers take x times their fixed time or more
};

/// The largest power of two from `least` that does not exceed `limit`; at least `least`.
inline int power_of_two_within(double limit, int least) {
    int chunks = least;
    while (2 * chunks <= limit) chunks *= 2;
    return chunks;
}

inline int chunks_by(ChunkRule rule, double x, const Estimator& time, const Plan& plan) {
    const Machine& machine = time.gemms.machine();
    const Operator& op = time.gemms.op();
    const int least = least_chunks(plan);
    if (rule == uncut) return 0;
    if (rule == estimated) return time.chunks(plan, least);
    const double most = time.most_chunks(plan);
    const auto within = [&](double limit) { return power_of_two_within(std::min(limit, most), least); };
    if (rule == fixed) return within(x);
    const double latency = machine.copies(plan.by_kernels).latency();
    const double transfers = received(machine, op) / rate_of(machine, op, plan);
    if (rule == by_size) return within(transfers / (x * latency));
    const double tiles = std::ceil(op.m / 256) * std::ceil(op.n / 256);
    if (rule == by_waves) return within(tiles / machine.compute_units / x);
    const double shorter = std::min(transfers, time.gemms.whole());
    return within(std::sqrt(2 * shorter / (x * latency)));
}

/// The advice. Strings are names in `sim list`.
struct Advice {
    const char* schedule;
    int chunks;            ///< chunks of a shard; 0: the schedule does not cut shards
    const char* agent;     ///< "dma" or "cu": DMA engines, or kernels on compute units
    const char* transfer;  ///< "pull" or "push"
    const char* gemm;      ///< ring_chunked: "shard" or "chunk", one GEMM for each; else ""
};

/// Largest ratio of a plan's estimate to the smallest estimate at which a leaf's plan is still
/// used. A judgement, not fitted: well above the usual error of an estimate, well below the
/// error of an unsuitable plan.
constexpr double credible = 1.02;

/// Applies a leaf's plan and chunk rule to an operator. If the plan does not fit the operator, is not
/// credible, or `plan` == plan_count, the plan with the smallest estimate is used.
inline Advice advice_of(std::size_t plan, ChunkRule rule, double x, const Estimates& estimates) {
    const Estimator& time = estimates.time;
    bool least = plan == plan_count || !serves(time.gemms, plans()[plan].plan);
    if (!least) {
        const Plan& chosen = plans()[plan].plan;
        const int chunks = cuts_shards(chosen) ? chunks_by(rule, x, time, chosen) : 1;
        least = time(chosen, chunks) > credible * estimates.best;
    }
    const NamedPlan& named = plans()[least ? estimates.best_plan : plan];
    const ChunkRule by = !cuts_shards(named.plan) ? uncut : least ? estimated : rule;
    const int chunks = chunks_by(by, x, time, named.plan);
    const char* const gemm = chunks == 1 ? "" : named.gemm;  // one chunk is the whole shard
    return {named.schedule, chunks, named.plan.by_kernels ? "cu" : "dma",
            time.pushes(named.plan, std::max(chunks, 1)) ? "push" : "pull", gemm};
}

/// The plan with the smallest estimate, without the tree: for machines unlike those the tree is fitted to.
inline Advice least_estimate(const Machine& machine, const Operator& op, bool own_kernels) {
    return advice_of(plan_count, estimated, 0, Estimates(machine, op, own_kernels));
}

}  // namespace overlap_advice

#endif
