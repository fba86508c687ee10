// Closed-form estimates of overlap schedules, for chunk counts and ratios in the static heuristic. Needs
// nothing but the standard library (C++11); see overlap_advice.hpp.
#ifndef OVERLAP_ESTIMATE_HPP
#define OVERLAP_ESTIMATE_HPP

#include <algorithm>
#include <cmath>

namespace overlap_advice {

/// Constants of a machine, each from a data sheet or from a short benchmark. SI units.
struct Machine {
    double gpus;           ///< ranks that take part
    double compute_units;  ///< of a GPU: CUs, SMs
    double copy_units;     ///< units that kernels copying to all peers at once hold
    double hbm_rate;       ///< bytes/s read and written by a streaming copy
    double launch;         ///< s between two kernels of a stream
    double dependency;     ///< s more where a kernel waits for another stream
    double dma_engines;    ///< bytes/s of the DMA engines that serve a GPU's peers, together
    double strided_run;    ///< bytes of a run at which a strided DMA copy reaches half its rate
    /// Of the operator's type: FLOP/s in full waves of tiles; s of a GEMM beyond its tiles, of a tile beyond
    /// its arithmetic, and of storing 128x128 elements; what an almost empty last or only wave costs in full
    /// ones; p of (arithmetic^p + memory^p)^(1/p).
    double gemm_rate, gemm_fixed, tile_fixed, tile_store, last_wave, only_wave, gemm_exponent;
    /// An all-gather of large operands, all peers at once: bytes/s that a GPU receives, by its DMA engines
    /// pulling or pushing, and by kernels; the time that an empty one takes; what one more chunk adds.
    double dma_pull_rate, dma_push_rate, kernel_rate;
    /// The same by DMA where pieces are sent as a GEMM finishes them: engines serve them in another order.
    double dma_pull_sent_rate, dma_push_sent_rate;
    double dma_latency, kernel_latency, dma_step, kernel_step;
    double dma_copy, kernel_copy;  ///< s of one empty copy to one peer
    /// The same in P-1 steps around a ring of neighbours, and with one peer at a time (r+1, r+2, ...).
    double ring_rate, one_peer_rate;
    double beside_dma, beside_kernels;  ///< share of a GEMM's rate lost while copies run, units held included
    bool engines_shared;                ///< fewer DMA engines than peers
    bool kernels_wait;                  ///< a copy kernel waits for the end of a GEMM that has all units
};

/// A GEMM C[m,n] = A[m,k]*B[k,n], in the dimensions of one GPU after a gather, with a collective.
struct Operator {
    double m, n, k;
    double operand_size;  ///< bytes of an element of A and B
    double output_size;   ///< bytes of an element of C
    bool gemm_first;      ///< C is sent (reduce-scatter, all-reduce, all-to-all), else A is received
    bool all_to_all;
    bool all_reduce;
    bool tokens_in_k;  ///< A arrives in slabs of K: every part of it accumulates into all of C
};

/// How a schedule is made; the names of schedules are those of `sim list`.
enum Style { serial, shard_p2p, shard_direct, ring_shard, ring_chunk, pieces, flag_gated };
struct Plan {
    Style style;
    bool hetero, fused, columns;  ///< of pieces
    bool by_kernels;
};

struct Tile {
    double rows, columns, efficiency;
};

/// Seconds of a GEMM of m x n x k alone: waves of the tile that is fastest (efficiencies: estimates in the
/// range of configs/calibrations), split in K where that fills the GPU.
inline double gemm_time(const Machine& machine, const Operator& op, double m, double n, double k,
                        bool accumulate = false) {
    static const Tile tiles[] = {{256, 256, 0.95}, {256, 128, 0.97}, {128, 256, 0.98}, {128, 128, 0.92},
                                 {64, 128, 0.74},  {128, 64, 0.75},  {64, 64, 0.64},   {32, 64, 0.48}};
    const double passes = accumulate ? 2 : 1;
    const double memory =
        (op.operand_size * (m + n) * k + passes * op.output_size * m * n) / machine.hbm_rate;
    const double p = machine.gemm_exponent, memory_power = std::pow(memory, p);
    double best = 1e300;
    for (const Tile& tile : tiles)
        for (double split = 1; split <= 16 && (split == 1 || k / split >= 256); split *= 2) {
            const double count = std::ceil(m / tile.rows) * std::ceil(n / tile.columns) * split;
            const double waves = count / machine.compute_units, full = std::floor(waves);
            const double floor = full > 0 ? machine.last_wave : machine.only_wave;
            const double cost = waves > full ? full + floor + (1 - floor) * (waves - full) : full;
            const double area = tile.rows * tile.columns;
            const double unit_rate = machine.gemm_rate * tile.efficiency / machine.compute_units;
            const double one = 2 * area * k / split / unit_rate + machine.tile_fixed +
                               machine.tile_store * passes * area / (128 * 128);
            const double partials = split > 1 ? machine.launch + 4 * split * m * n / machine.hbm_rate : 0;
            if (cost * one + partials >= best) continue;  // memory only adds to it
            best = std::min(best, std::pow(std::pow(cost * one, p) + memory_power, 1 / p) + partials);
        }
    return best + machine.gemm_fixed;
}

/// Bytes that a GPU receives.
inline double received(const Machine& machine, const Operator& op) {
    const double whole = op.gemm_first ? op.output_size * op.m * op.n : op.operand_size * op.m * op.k;
    return whole * (machine.gpus - 1) / machine.gpus * (op.all_reduce ? 2 : 1);
}

/// Whether DMA copies of a plan are pushed: the faster way; pulled (before a GEMM) or pushed where both are.
/// Kernels push.
inline bool pushes(const Machine& machine, const Operator& op, const Plan& plan) {
    const bool to_one = plan.style == shard_p2p || plan.style == ring_shard || plan.style == ring_chunk;
    if (plan.by_kernels || to_one) return true;
    if (plan.style == serial || !op.gemm_first) return machine.dma_push_rate > 1.01 * machine.dma_pull_rate;
    return machine.dma_push_sent_rate * 1.01 >= machine.dma_pull_sent_rate;
}

/// Bytes/s of a plan's transfers.
inline double rate_of(const Machine& machine, const Operator& op, const Plan& plan) {
    if (plan.style == ring_shard || plan.style == ring_chunk) return machine.ring_rate;
    if (plan.style == shard_p2p) return machine.one_peer_rate;
    if (plan.by_kernels) return machine.kernel_rate;
    return op.gemm_first && plan.style != serial
               ? std::max(machine.dma_pull_sent_rate, machine.dma_push_sent_rate)
               : std::max(machine.dma_pull_rate, machine.dma_push_rate);
}

/// GEMM time of a part of the rows (or slab of K, where the tokens are in K), of `parts` parts.
inline double part_time(const Machine& machine, const Operator& op, double share, bool along_k,
                        bool accumulate) {
    return along_k ? gemm_time(machine, op, op.m, op.n, op.k * share, accumulate)
                   : gemm_time(machine, op, op.m * share, op.n, op.k, accumulate);
}

/// Bytes that lie together where a transfer cuts rows, which DMA engines copy row by row; 0: all of them.
inline double run_of(const Operator& op, const Plan& plan, double chunks) {
    if (plan.style != pieces || !plan.columns) return 0;
    if (op.tokens_in_k) return op.operand_size * op.m / chunks;
    return op.gemm_first ? op.output_size * op.n / chunks : op.operand_size * op.k / chunks;
}

/// Seconds that a plan takes, by going through its steps: transfers one after another, GEMMs one after
/// another, each waiting for the other's step, GEMMs slower while transfers run. No queues, routes or single
/// copies.
inline double estimate(const Machine& machine, const Operator& op, const Plan& plan, double chunks) {
    const double P = machine.gpus, run = run_of(op, plan, chunks);
    const double stretch = run > 0 && !plan.by_kernels ? 1 + machine.strided_run / run : 1;
    const double bytes = received(machine, op);
    // A strided copy occupies its engine for longer, not the links.
    const double on_links = std::max(bytes / rate_of(machine, op, plan),
                                     plan.by_kernels ? 0 : bytes * stretch / machine.dma_engines);
    const bool one_by_one = plan.style == shard_p2p || plan.style == ring_shard || plan.style == ring_chunk;
    const double of_all = plan.by_kernels ? machine.kernel_latency : machine.dma_latency;
    const double of_one = plan.by_kernels ? machine.kernel_copy : machine.dma_copy;
    const double latency = one_by_one ? of_one : of_all;
    const double per_step = plan.by_kernels ? machine.kernel_step : machine.dma_step;
    const double whole = gemm_time(machine, op, op.m, op.n, op.k);
    const bool reduces = op.gemm_first && !op.all_to_all;
    const double reduction = reduces ? (1 + 1 / P) * op.output_size * op.m * op.n / machine.hbm_rate : 0;
    const double handoff = machine.launch + machine.dependency;
    if (plan.style == serial) return latency + on_links + whole + reduction + handoff * (reduces ? 2 : 1);

    const bool own_first = plan.style != pieces || plan.hetero;
    const bool by_shard = one_by_one || (plan.style == shard_direct &&
                                         (op.gemm_first || (!plan.by_kernels && machine.engines_shared)));
    const double steps = by_shard ? P - 1 : plan.style == shard_direct ? 1 : chunks;
    const double share = (1 - (own_first ? 1 / P : 0)) / steps;
    double gemms = 1;  // of a step
    if (plan.style == ring_chunk) gemms = chunks;
    if (plan.style == shard_direct && !by_shard) gemms = P - 1;
    if (plan.style == pieces && !plan.fused) gemms = plan.hetero ? P - 1 : P;
    double part, own = part_time(machine, op, 1 / P, op.tokens_in_k, false) + machine.launch;
    if (plan.style == flag_gated) {
        part = whole * share;
        own = whole / P + machine.launch;
    } else if (plan.style == pieces && plan.columns) {
        // Column blocks cut the other dimension: K of what is gathered, N of what is sent, M of slabs of K.
        const double rows = share * steps / gemms;
        part = op.gemm_first    ? gemm_time(machine, op, op.m * rows, op.n / chunks, op.k)
               : op.tokens_in_k ? gemm_time(machine, op, op.m / chunks, op.n, op.k * rows, own_first)
                                : gemm_time(machine, op, op.m * rows, op.n, op.k / chunks, true);
    } else {
        part = part_time(machine, op, share / gemms, op.tokens_in_k, op.tokens_in_k);
    }
    if (plan.style != flag_gated) part += machine.launch;
    double packed = 0, staged = 0;  // local copies of a step: of its rows, and of the own piece
    if (plan.style == pieces && plan.fused && !plan.columns) {
        const double moved = op.gemm_first    ? op.operand_size * op.m * op.k
                             : op.tokens_in_k ? op.operand_size * op.n * op.k
                                              : op.output_size * op.m * op.n;
        packed = 2 * share * moved / machine.hbm_rate;
        if (!plan.hetero && !op.gemm_first)
            staged = 2 * share / P * op.operand_size * op.m * op.k / machine.hbm_rate;
    }
    const double packing = packed > 0 ? handoff + packed : 0;
    const bool forwards = plan.style == ring_shard || plan.style == ring_chunk;
    const double transfer = on_links / steps + (forwards     ? latency + (chunks - 1) * machine.launch
                                                : one_by_one ? machine.launch
                                                             : per_step);
    // What the last transfer takes by itself, where it goes to one peer only.
    const double to_one =
        plan.style == shard_direct ? received(machine, op) / (P - 1) / machine.one_peer_rate : 0;
    const double slow = 1 / (1 - (plan.by_kernels ? machine.beside_kernels : machine.beside_dma));
    // Copy kernels that wait for GEMMs get in between two of them, and nothing overlaps.
    if (plan.by_kernels && machine.kernels_wait)
        return latency + (own_first ? own : 0) + steps * (transfer + part * gemms + packing + staged) +
               handoff + (reduces ? reduction / steps + handoff : 0);
    double sent = 0, done = 0, all_sent = latency + steps * transfer;
    const auto multiply = [&](double work) {
        const double beside = std::max(0.0, std::min(all_sent - done, work * slow));
        done += beside + work - beside / slow;
    };
    if (!op.gemm_first) {
        sent = latency;
        if (own_first) multiply(own);
        for (double step = 0; step < steps; ++step) {
            sent += transfer;
            done = std::max(done, sent + machine.dependency + (op.tokens_in_k && step == 0 ? packing : 0));
            // Own pieces of uniform plans are staged by the stream that also puts rows in their place, so
            // that each waits for the GEMM before. Otherwise packing goes on beside GEMMs and takes units
            // from them.
            if (staged > 0 && !op.tokens_in_k)
                done += staged + handoff + (step > 0 ? packing : 0);
            else if (step > 0)
                multiply(packed + staged);
            for (double i = 0; i < gemms; ++i) multiply(part);
        }
        return done + (op.tokens_in_k ? 0 : packing);
    }
    for (double step = 0; step < steps; ++step) {
        all_sent = sent;
        multiply(part * gemms + (step == 0 ? packing : 0));
        sent = std::max(std::max(sent, done) + transfer, done + to_one);
    }
    if (own_first) done += own;
    return std::max(done, sent + latency) + (reduces ? reduction / steps + handoff : 0);
}

/// The chunk count of 1, 2, 4, 8, 16 with the least estimate, from `least` on.
inline int chunks_by_estimate(const Machine& machine, const Operator& op, const Plan& plan, int least) {
    int best = least;
    double time = estimate(machine, op, plan, least);
    for (int chunks = 2 * least; chunks <= 16; chunks *= 2) {
        const double other = estimate(machine, op, plan, chunks);
        if (other < time) best = chunks;
        time = std::min(time, other);
    }
    return best;
}

}  // namespace overlap_advice

#endif
