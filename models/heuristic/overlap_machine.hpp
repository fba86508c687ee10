// What the static heuristic knows: a machine's constants, an operator, and the plans. Needs only the
// standard library (C++11).
#ifndef OVERLAP_MACHINE_HPP
#define OVERLAP_MACHINE_HPP

#include <algorithm>
#include <cmath>
#include <vector>

#include "overlap_gemm.hpp"

namespace overlap_advice {

/// Constants of a machine in SI units, each from a data sheet or a short benchmark. `sim advise --constants`
/// prints them for a topology.
struct Machine {
    double gpus;           ///< ranks that take part
    double compute_units;  ///< CUs or SMs of a GPU
    double copy_units;     ///< units held by kernels that copy to all peers at once
    double stream_units;   ///< units that a local copy at full rate keeps busy
    double hbm_rate;       ///< bytes/s read and written by a streaming copy
    double launch;         ///< s between two kernels of a stream
    double stream_start;   ///< s of a local copy in addition to its bytes
    double dependency;     ///< extra s if a kernel waits for another stream
    double event;          ///< extra s between two kernels of a stream if another stream waits for the first
    double flag;           ///< s until a polling kernel sees a flag
    double slowest;        ///< GEMM time on the slowest GPU over the mean, minus 1
    GemmConstants gemm;    ///< for the operator's type

    /// All-gather of large operands from all peers at once: bytes/s that a GPU receives, with DMA engines
    /// pulling or pushing, and with kernels.
    double dma_pull_rate, dma_push_rate, kernel_rate;
    /// The same by DMA after a GEMM. Engines serve copies in one order if all pieces of a step are ready at
    /// once (sent), and in another if each piece is sent as it is finished (pieces).
    double dma_pull_sent_rate, dma_push_sent_rate;
    double dma_pull_pieces_rate, dma_push_pieces_rate;
    /// Pushed around a ring of neighbours, and to one peer at a time (r+1, r+2, ...).
    double dma_ring_rate, kernel_ring_rate, dma_one_peer_rate, kernel_one_peer_rate;
    double dma_engines;  ///< bytes/s of all DMA engines that serve a GPU's peers
    double strided_run;  ///< bytes of a contiguous run at which a strided DMA copy reaches half its rate

    /// s of an empty all-gather from all peers at once, and of one empty copy to one peer.
    double dma_pull_latency, dma_push_latency, kernel_latency;
    double dma_copy, kernel_copy;
    /// s that one more copy to every peer adds to a queue of copies, and one more copy to one
    /// peer (equal for kernels).
    double dma_step, dma_start, kernel_step;
    /// s between two copies of a GPU if the host issues them one at a time; else 0.
    double dma_issue, kernel_issue;

    /// Fractions lost while copies run at the full rate of the GPU's links: of its compute units, beyond the
    /// units that copies hold; of a GEMM's rate beside any copy, and beside a kernel copy if the GEMM has few
    /// waves; of the DMA engines' rate.
    double units_lost_to_dma, units_lost_to_kernels, slowed_beside_dma, slowed_beside_kernels;
    double few_waves_lost, dma_lost;

    bool engines_shared;  ///< fewer DMA engines than peers: copies to all peers run one after another
    bool unordered;       ///< such engines serve pushes in any order
    bool kernels_wait;    ///< a copy kernel waits for the end of a GEMM that holds all units
};

/// A GEMM C[m,n] = A[m,k]*B[k,n] with a collective; dimensions of one GPU after a gather.
struct Operator {
    double m, n, k;
    double operand_size;  ///< bytes of an element of A and B
    double output_size;   ///< bytes of an element of C
    bool gemm_first;      ///< C is sent (reduce-scatter, all-reduce, all-to-all); else A is received
    bool all_to_all;
    bool all_reduce;
    bool tokens_in_k;  ///< A arrives in slabs of K, and each part accumulates into all of C
};

/// How a schedule is made; the names of schedules are those of `sim list`.
enum Style { serial, shard_p2p, shard_direct, ring_shard, ring_chunk, pieces, flag_gated };
struct Plan {
    Style style;
    bool hetero, fused, columns;  ///< of pieces
    bool by_kernels;
};

inline bool around_ring(const Plan& plan) {
    return plan.style == ring_shard || plan.style == ring_chunk;
}
/// Whether transfers go to one peer at a time; such transfers are pushed.
inline bool to_one_peer(const Plan& plan) {
    return plan.style == shard_p2p || around_ring(plan);
}
/// Whether each piece that arrives or leaves has its own GEMM.
inline bool gemm_a_piece(const Plan& plan) {
    return plan.style == shard_direct || (plan.style == pieces && !plan.fused);
}
inline bool only_pushes(const Plan& plan) {
    return plan.by_kernels || to_one_peer(plan);
}

/// Cached prices of GEMMs of the operator's type. Keeps references to machine and operator.
class GemmPrices {
public:
    GemmPrices(const Machine& machine, const Operator& op)
        : machine_(machine),
          op_(op),
          whole_(gemm_cost({op.m, op.n, op.k, 1, op.operand_size, op.output_size, false}, machine.gemm)) {}

    /// One m x n x k GEMM alone, at the clock that the power limit allows when
    /// the GPU runs the whole operator.
    GemmCost operator()(double m, double n, double k, bool accumulate) const {
        for (const Known& known : known_)
            if (known.m == m && known.n == n && known.k == k && known.accumulate == accumulate)
                return known.cost;
        const GemmWork work = {std::ceil(m),     std::ceil(n),    std::ceil(k), 1,
                               op_.operand_size, op_.output_size, accumulate};
        known_.push_back({m, n, k, accumulate, gemm_cost(work, machine_.gemm, whole_.body)});
        return known_.back().cost;
    }
    /// Time of the whole operator's GEMM in s.
    double whole() const { return whole_.launch + whole_.body; }

    const Machine& machine() const { return machine_; }
    const Operator& op() const { return op_; }

private:
    struct Known {
        double m, n, k;
        bool accumulate;
        GemmCost cost;
    };
    const Machine& machine_;
    const Operator& op_;
    GemmCost whole_;
    mutable std::vector<Known> known_;
};

/// Bytes that a GPU receives.
inline double received(const Machine& machine, const Operator& op) {
    const double whole = op.gemm_first ? op.output_size * op.m * op.n : op.operand_size * op.m * op.k;
    return whole * (machine.gpus - 1) / machine.gpus * (op.all_reduce ? 2 : 1);
}

/// Bytes/s of a transfer to one peer alone.
inline double one_peer_rate(const Machine& machine, const Plan& plan) {
    return plan.by_kernels ? machine.kernel_one_peer_rate : machine.dma_one_peer_rate;
}

/// Bytes/s of a plan's transfers.
inline double rate_of(const Machine& machine, const Operator& op, const Plan& plan, bool push) {
    if (around_ring(plan)) return plan.by_kernels ? machine.kernel_ring_rate : machine.dma_ring_rate;
    if (plan.style == shard_p2p) return one_peer_rate(machine, plan);
    if (plan.by_kernels) return machine.kernel_rate;
    if (!op.gemm_first || plan.style == serial) return push ? machine.dma_push_rate : machine.dma_pull_rate;
    if (gemm_a_piece(plan) || plan.style == flag_gated)
        return push ? machine.dma_push_pieces_rate : machine.dma_pull_pieces_rate;
    return push ? machine.dma_push_sent_rate : machine.dma_pull_sent_rate;
}
/// In the faster of the two directions.
inline double rate_of(const Machine& machine, const Operator& op, const Plan& plan) {
    return std::max(rate_of(machine, op, plan, true), rate_of(machine, op, plan, false));
}

}  // namespace overlap_advice

#endif
