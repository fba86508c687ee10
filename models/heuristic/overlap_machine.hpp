// What the static heuristic knows: a machine's constants, an operator, and the plans. Needs only the
// standard library (C++11).
#ifndef OVERLAP_MACHINE_HPP
#define OVERLAP_MACHINE_HPP

#include <algorithm>
#include <cmath>
#include <vector>

#include "overlap_gemm.hpp"

namespace overlap_advice {

/// Copies between a GPU and all its peers at once, in one direction.
struct AllPeers {
    double rate;     ///< bytes/s that a GPU receives in an all-gather of large operands
    double latency;  ///< s of an empty all-gather
    /// bytes/s after a GEMM. DMA engines serve copies in one order if all pieces of a step are ready at once
    /// (sent), and in another if each piece is sent as it is finished (pieces).
    double sent_rate, pieces_rate;
};

/// Copies by one agent: by DMA engines, or by kernels.
struct Copies {
    AllPeers pull, push;  ///< kernels only push: both are the same
    double ring_rate;     ///< bytes/s pushed around a ring of neighbours
    double peer_rate;     ///< bytes/s pushed to one peer at a time (r+1, r+2, ...)
    double peer_latency;  ///< s of one empty copy to one peer
    /// s that one more copy to every peer adds to a queue of copies, and one more copy to one peer
    double step, peer_step;
    double
        switch_over;  ///< s from a copy to one peer until the same engine begins one to another peer; 0: never
    double issue;  ///< s between two copies of a GPU if the host issues them one at a time; else 0
    double units;  ///< compute units held by copies to all peers at once
    /// Fractions lost while copies run at the full rate of the GPU's links: of its compute units, beyond
    /// `units`; of a GEMM's rate; of that rate if the GEMM has few waves; of the copies' rate.
    double units_lost, gemm_lost, few_waves_lost, copies_lost;

    double latency() const { return std::min(pull.latency, push.latency); }
};

/// The DMA engines of a GPU.
struct DmaEngines {
    double rate;         ///< bytes/s of all engines that serve the GPU's peers
    double strided_run;  ///< bytes of a contiguous run at which a strided copy reaches half its rate
    bool shared;         ///< fewer engines than peers: copies to all peers run one after another
    bool unordered;      ///< shared engines serve pushes in any order
};

/// Constants of a machine in SI units, each from a data sheet or a short benchmark. `sim advise --constants`
/// prints them for a topology.
struct Machine {
    double gpus;           ///< ranks that take part
    double compute_units;  ///< CUs or SMs of a GPU
    double stream_units;   ///< units that a local copy at full rate keeps busy
    double hbm_rate;       ///< bytes/s read and written by a streaming copy
    double launch;         ///< s between two kernels of a stream
    double stream_start;   ///< s of a local copy in addition to its bytes
    double dependency;     ///< extra s if a kernel waits for another stream
    double event;          ///< extra s between two kernels of a stream if another stream waits for the first
    double flag;           ///< s until a polling kernel sees a flag
    double slowest;        ///< GEMM time on the slowest GPU over the mean, minus 1
    bool kernels_wait;     ///< a copy kernel waits for the end of a GEMM that holds all units
    GemmConstants gemm;    ///< for the operator's type
    DmaEngines engines;
    Copies dma, kernels;

    const Copies& copies(bool by_kernels) const { return by_kernels ? kernels : dma; }
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
          whole_(gemm_cost({op.m, op.n, op.k, 1, op.operand_size, op.output_size, false, false},
                           machine.gemm)) {}

    /// One m x n x k GEMM alone, at the clock that the power limit allows when
    /// the GPU runs the whole operator. `persistent`: by a kernel that polls or sets flags (see gemm_cost).
    GemmCost operator()(double m, double n, double k, bool accumulate, bool persistent = false) const {
        for (const Known& known : known_)
            if (known.m == m && known.n == n && known.k == k && known.accumulate == accumulate &&
                known.persistent == persistent)
                return known.cost;
        const GemmWork work = {std::ceil(m),     std::ceil(n),    std::ceil(k), 1,
                               op_.operand_size, op_.output_size, accumulate,   false};
        known_.push_back(
            {m, n, k, accumulate, persistent, gemm_cost(work, machine_.gemm, whole_.body, 0, persistent)});
        return known_.back().cost;
    }
    /// Time of the whole operator's GEMM in s.
    double whole() const { return whole_.launch + whole_.body; }

    const Machine& machine() const { return machine_; }
    const Operator& op() const { return op_; }

private:
    struct Known {
        double m, n, k;
        bool accumulate, persistent;
        GemmCost cost;
    };
    const Machine& machine_;
    const Operator& op_;
    GemmCost whole_;
    mutable std::vector<Known> known_;
};

/// Whether compute units stay free until the end of a GEMM that runs alone.
inline bool leaves_units(const GemmCost& gemm, const Machine& machine) {
    return gemm.waves <= 1 && gemm.units_busy <= machine.compute_units - 1;
}

/// Bytes that a GPU receives.
inline double received(const Machine& machine, const Operator& op) {
    const double whole = op.gemm_first ? op.output_size * op.m * op.n : op.operand_size * op.m * op.k;
    return whole * (machine.gpus - 1) / machine.gpus * (op.all_reduce ? 2 : 1);
}

/// Bytes/s of a plan's transfers.
inline double rate_of(const Machine& machine, const Operator& op, const Plan& plan, bool push) {
    const Copies& copies = machine.copies(plan.by_kernels);
    if (around_ring(plan)) return copies.ring_rate;
    if (plan.style == shard_p2p) return copies.peer_rate;
    const AllPeers& all = push ? copies.push : copies.pull;
    if (!op.gemm_first || plan.style == serial) return all.rate;
    return gemm_a_piece(plan) || plan.style == flag_gated ? all.pieces_rate : all.sent_rate;
}
/// In the faster of the two directions.
inline double rate_of(const Machine& machine, const Operator& op, const Plan& plan) {
    return std::max(rate_of(machine, op, plan, true), rate_of(machine, op, plan, false));
}

}  // namespace overlap_advice

#endif
