// Estimates of overlap schedules by going through their steps on one GPU, for choices of the static
// heuristic. Needs nothing but the standard library (C++11); see overlap_advice.hpp.
#ifndef OVERLAP_ESTIMATE_HPP
#define OVERLAP_ESTIMATE_HPP

#include <algorithm>
#include <cstddef>
#include <vector>

#include "overlap_steps.hpp"

namespace overlap_advice {

/// A plan as steps. All GPUs are taken to do the same at the same time.
class Unrolled {
public:
    Unrolled(const GemmPrices& prices, const Plan& plan, int chunks, bool push)
        : machine_(prices.machine()),
          op_(prices.op()),
          prices_(prices),
          plan_(plan),
          chunks_(chunks),
          peers_(static_cast<int>(machine_.gpus) - 1),
          bytes_(received(machine_, op_)),
          on_links_(time_on_links(push)),
          steps_(machine_, plan.by_kernels, held(), 2 * bytes_ / on_links_),
          whole_(gemm(op_.m, op_.n, op_.k)) {
        const Machine& machine = machine_;
        const double pull_more = push ? 0 : machine.dma_pull_latency - machine.dma_push_latency;
        to_one_ = plan.by_kernels
                      ? Transfer{machine.kernel_copy, machine.kernel_step, machine.kernel_issue}
                      : Transfer{machine.dma_copy + pull_more, machine.dma_start, machine.dma_issue};
        const double latency = plan.by_kernels ? machine.kernel_latency
                               : push          ? machine.dma_push_latency
                                               : machine.dma_pull_latency;
        const double step = plan.by_kernels ? machine.kernel_step : machine.dma_step;
        each_ = to_one_peer(plan) ? to_one_ : Transfer{latency, step, to_one_.issue * peers_};
        own_first_ = plan.style != pieces || plan.hetero;
        gated_ = plan.style == flag_gated;
        in_turn_ = machine.engines_shared && !plan.by_kernels && !to_one_peer(plan);
        shared_ =
            1 - std::min(1.0, rate_of(machine, op_, plan, push) / peers_ / one_peer_rate(machine, plan));
        waits_ = machine.kernels_wait && plan.by_kernels;
        unordered_ = in_turn_ && machine.unordered && (push || gated_);
        if (plan.style == serial)
            one_after_another();
        else if (op_.gemm_first)
            send();
        else
            gather();
    }

    double seconds() { return steps_.run(); }

private:
    /// Of copies to all peers, or to one: s of an empty one, s that one more adds, and s between two that are
    /// issued.
    struct Transfer {
        double latency, step, issue;
        /// s from the end of its bytes until they are seen.
        double seen() const { return latency - step; }
    };

    double time_on_links(bool push) const {
        const double on_links = bytes_ / rate_of(machine_, op_, plan_, push);
        if (plan_.by_kernels) return on_links;
        // Column blocks cut rows, which DMA engines copy one by one: it occupies the engine, not the links.
        double run = 0;
        if (plan_.style == pieces && plan_.columns)
            run = (op_.gemm_first    ? op_.output_size * op_.n
                   : op_.tokens_in_k ? op_.operand_size * op_.m
                                     : op_.operand_size * op_.k) /
                  chunks_;
        const double stretch = run > 0 ? 1 + machine_.strided_run / run : 1;
        return std::max(on_links, bytes_ * stretch / machine_.dma_engines);
    }
    /// Compute units that kernels hold while their bytes move, not while they are launched, on average; those
    /// of one peer where a transfer is to one.
    double held() const {
        if (!plan_.by_kernels) return 0;
        const bool one = to_one_peer(plan_) || sent_apart();
        const double rate = one ? one_peer_rate(machine_, plan_) : bytes_ / on_links_;
        const double bytes = (one ? bytes_ / peers_ : bytes_) / (plan_.style == shard_direct ? 1 : chunks_);
        const double moving = bytes / rate;
        return machine_.copy_units / (one ? peers_ : 1) * moving / (moving + machine_.kernel_step);
    }
    /// Whether a GEMM's results go to each peer as they are finished.
    bool sent_apart() const { return op_.gemm_first && (gemm_a_piece(plan_) || plan_.style == flag_gated); }

    Step gemm(double m, double n, double k, bool accumulate = false) const {
        const GemmCost cost = prices_(m, n, k, accumulate);
        const double time = cost.launch + cost.body;
        return {time * (1 + machine_.slowest) + machine_.launch,
                cost.units_busy,
                cost.traffic / time,
                machine_.dependency,
                cost.waves <= 4,  // between 2, whose tiles are all dealt beforehand, and 8, whose are not
                0,
                0,
                {-1, -1, -1}};
    }
    /// GEMM of a share of the tokens, which are rows, or a slab of K.
    Step part(double share, bool accumulate) const {
        if (gated_) {
            Step step = whole_;
            step.work *= share;
            if (machine_.flag > 0) step.seen = machine_.flag;
            return step;
        }
        return op_.tokens_in_k ? gemm(op_.m, op_.n, op_.k * share, accumulate)
                               : gemm(op_.m * share, op_.n, op_.k);
    }
    /// A local kernel that reads and writes so many bytes.
    Step local(double bytes) const {
        const double time = bytes / machine_.hbm_rate + machine_.launch + machine_.stream_start;
        return {time, machine_.stream_units, bytes / time, machine_.dependency, false, 0, 0, {-1, -1, -1}};
    }
    static Step transfer(double work, double seen) { return {work, 0, 0, seen, false, 0, 0, {-1, -1, -1}}; }

    double c_bytes() const { return op_.output_size * op_.m * op_.n; }
    double a_bytes() const { return op_.operand_size * op_.m * op_.k; }
    bool reduces() const { return op_.gemm_first && !op_.all_to_all; }
    double summed() const { return (machine_.gpus + 1) / machine_.gpus * c_bytes(); }

    void one_after_another() {
        Step all = transfer(on_links_ + each_.step, each_.seen());
        if (!op_.gemm_first) {
            whole_.after[moving] = steps_.add(moving, all);
            steps_.add(multiplying, whole_);
            return;
        }
        all.after[multiplying] = steps_.add(multiplying, whole_);
        Step sum = local(summed());
        sum.after[moving] = steps_.add(moving, all);
        if (reduces()) steps_.add(streaming, sum);
    }

    // Transfers first, GEMMs as they come.
    void gather() {
        const int rounds = to_one_peer(plan_) ? peers_ : plan_.style == shard_direct ? 1 : chunks_;
        const int cuts = around_ring(plan_) ? chunks_ : 1;  // of a round's transfer
        const bool one_issued = in_turn_ || (to_one_.issue > 0 && !plan_.by_kernels && !to_one_peer(plan_));
        int gemms = 1;  // of a round
        if (plan_.style == ring_chunk) gemms = chunks_;
        if (gemm_a_piece(plan_)) gemms = own_first_ ? peers_ : peers_ + 1;
        if (gated_ && one_issued) gemms = peers_;
        const bool apart = one_issued && gemms >= peers_;  // a transfer for each peer
        const double own_share = own_first_ ? 1 / machine_.gpus : 0;
        const double share = (1 - own_share) / rounds / gemms;
        const bool columns = plan_.style == pieces && plan_.columns;
        const bool packs = plan_.style == pieces && plan_.fused && !columns;
        const double moved = op_.tokens_in_k ? op_.operand_size * op_.n * op_.k : c_bytes();

        const Step own = part(1 / machine_.gpus, false);
        const int own_place = own_first_ ? steps_.add(multiplying, own) : -1;
        const auto part_of = [&](bool accumulate) {
            if (!columns) return part(share, accumulate);
            return op_.tokens_in_k ? gemm(op_.m / chunks_, op_.n, op_.k * share * rounds, own_first_)
                                   : gemm(op_.m * share * rounds, op_.n, op_.k / chunks_, accumulate);
        };
        const Step first_part = part_of(false), later_part = part_of(op_.tokens_in_k || columns);
        const int last_transfer = rounds * cuts * (apart ? peers_ : 1) - 1;
        int first_of_round = own_place, done = -1;
        for (int round = 0; round < rounds; ++round) {
            std::vector<int> come;
            for (int cut = 0; cut < cuts; ++cut)
                add_transfers(round, on_links_ / rounds / cuts, apart, cuts, own, first_of_round, come);
            int ready = -1;
            if (packs && !plan_.hetero)
                ready = steps_.add(streaming, local(2 * a_bytes() / rounds / machine_.gpus));
            if (packs && op_.tokens_in_k) ready = steps_.add(streaming, local(2 * share * gemms * moved));
            for (int i = 0; i < gemms; ++i) {
                const bool first = columns ? round == 0 : steps_.count(multiplying) == 0;
                Step one = first ? first_part : later_part;
                one.after[streaming] = ready;
                const bool of_own = i == 0 && gemms > peers_ && plan_.style == pieces;
                if (!of_own) {
                    const std::size_t place = plan_.style == ring_chunk ? static_cast<std::size_t>(i)
                                              : apart ? static_cast<std::size_t>(i - (gemms - peers_))
                                                      : come.size() - 1;
                    one.after[moving] = unordered_ ? last_transfer : come[place];
                }
                done = steps_.add(multiplying, one);
                if (i == 0) first_of_round = done;
            }
            if (packs && !op_.tokens_in_k) scatter(2 * share * gemms * moved, done);
        }
        if (columns && plan_.fused && plan_.hetero && !op_.tokens_in_k)
            scatter(2 * (1 - own_share) * c_bytes(), done);
    }

    void scatter(double bytes, int after) {
        Step step = local(bytes);
        step.after[multiplying] = after;
        steps_.add(streaming, step);
    }

    /// One cut of a round's transfers, `body` s on the links; their places into `come`.
    void add_transfers(int round, double body, bool apart, int cuts, const Step& own, int first_of_round,
                       std::vector<int>& come) {
        const bool first = steps_.count(moving) == 0;
        const double period = std::max(body + each_.step, each_.issue);
        if (apart && in_turn_) {
            for (int i = 1; i <= peers_; ++i)
                come.push_back(steps_.add(moving, transfer((first ? body + each_.step : period) / peers_,
                                                           i == peers_ ? each_.seen() : to_one_.seen())));
            return;
        }
        if (apart) {
            for (int i = 0; i < peers_; ++i) {
                const bool wait = i == 0 && !first;  // for the engine of the round before
                come.push_back(
                    steps_.add(moving, transfer(wait ? period - (peers_ - 1) * to_one_.issue : to_one_.issue,
                                                to_one_.latency + body - to_one_.issue)));
            }
            return;
        }
        const double work = first ? body + each_.step : period;
        Step step = transfer(work, each_.seen());
        if (around_ring(plan_) && round > 0) step.after[moving] = steps_.count(moving) - cuts;
        if (waits_ && first && own_first_) {  // launched beside the own part's GEMM, which has the units
            step.after[multiplying] = 0;
            step.seen = std::max(to_one_.seen(), step.seen - own.work);
        }
        if (waits_ && !first && !to_one_peer(plan_)) {
            // Kernels for the peers that were served first get in before the GEMM of the round before begins.
            step.work = work / 2;
            steps_.add(moving, step);
            step.after[multiplying] = first_of_round;
        }
        come.push_back(steps_.add(moving, step));
    }

    // GEMMs first, their results as they are done.
    void send() {
        const int rounds = to_one_peer(plan_) || plan_.style == shard_direct ? peers_ : chunks_;
        const bool by_piece = gated_ || (plan_.style == pieces && !plan_.fused);
        int gemms = 1;
        if (plan_.style == ring_chunk) gemms = chunks_;
        if (by_piece) gemms = own_first_ ? peers_ : peers_ + 1;
        const double own_share = own_first_ ? 1 / machine_.gpus : 0;
        const double share = (1 - own_share) / rounds / gemms;
        const bool columns = plan_.style == pieces && plan_.columns,
                   fused = plan_.style == pieces && plan_.fused;
        if (plan_.by_kernels && sent_apart()) steps_.count_in_flight();
        Step step = columns ? gemm(op_.m * share * rounds, op_.n / chunks_, op_.k) : part(share, false);
        if (fused && !columns)
            for (int round = 0; round < rounds; ++round) steps_.add(streaming, local(2 * share * a_bytes()));
        if (fused && columns && plan_.hetero) steps_.add(streaming, local(2 * (1 - own_share) * a_bytes()));
        const int packed = steps_.count(streaming);

        int sent = -1;
        for (int round = 0; round < rounds; ++round) {
            std::vector<int> made;
            if (packed > 0) step.after[streaming] = packed == 1 ? 0 : round;
            for (int i = 0; i < gemms; ++i) {
                made.push_back(steps_.add(multiplying, step));
                if (by_piece && i < peers_) sent = send_piece(made.back(), rounds * gemms);
            }
            for (int cut = 0; around_ring(plan_) && cut < chunks_; ++cut)
                forward(round, made[plan_.style == ring_chunk ? static_cast<std::size_t>(cut) : 0]);
            if (!by_piece && !around_ring(plan_)) sent = send_shard(rounds, made.back());
            if (reduces() && plan_.style == pieces && !plan_.hetero) sum_up(summed() / rounds, sent, -1);
        }
        if (own_first_) steps_.add(multiplying, part(1 / machine_.gpus, false));
        if (!reduces() || around_ring(plan_) || (plan_.style == pieces && !plan_.hetero)) return;
        const int sums = gated_ || plan_.style == pieces ? chunks_ : 1, transfers = steps_.count(moving);
        for (int i = 1; i <= sums; ++i)
            sum_up(summed() / sums, i * (transfers / sums) - 1, steps_.count(multiplying) - 1);
    }

    /// What one GEMM, or one part of a gated one, made for one peer.
    int send_piece(int made, int gemms) {
        const double alone = bytes_ / peers_ / one_peer_rate(machine_, plan_) / chunks_;
        // What starts a copy to one peer is hidden behind those to others, unless one engine serves all.
        const double work =
            std::max(on_links_ / chunks_ / peers_ + (in_turn_ ? to_one_.step : 0), to_one_.issue);
        Step piece = transfer(work, to_one_.latency + shared_ * std::max(0.0, alone - work));
        piece.to_its_peer = alone;
        piece.behind = to_one_.step;
        piece.after[multiplying] =
            waits_ && gated_ ? gemms : made;  // a gated GEMM leaves no units before its end
        return steps_.add(moving, piece);
    }

    /// A round's shard to one peer, or its pieces to all.
    int send_shard(int rounds, int made) {
        const bool direct = plan_.style == shard_direct;
        const double alone = on_links_ / rounds + each_.step;
        const double work = std::max(alone, direct ? to_one_.issue : each_.issue);
        Step step = transfer(work, std::max(0.0, each_.seen() + alone - work));
        if (to_one_peer(plan_) || direct) step.seen = to_one_.latency;
        if (direct) {
            step.to_its_peer = bytes_ / peers_ / one_peer_rate(machine_, plan_);
            step.seen += shared_ * std::max(0.0, step.to_its_peer - work);
        }
        step.after[multiplying] = made;
        return steps_.add(moving, step);
    }

    /// A chunk around the ring, added there to what the next round's GEMM (at last the own part's) makes.
    void forward(int round, int made) {
        Step step =
            transfer(std::max(on_links_ / peers_ / chunks_ + to_one_.step, to_one_.issue), to_one_.latency);
        step.after[multiplying] = made;
        if (round > 0) step.after[streaming] = steps_.count(streaming) - chunks_;
        const int gemms = plan_.style == ring_chunk ? chunks_ : 1;
        sum_up(3 * bytes_ / peers_ / chunks_, steps_.add(moving, step),
               std::min(made + gemms, peers_ * gemms));
    }

    void sum_up(double bytes, int sent, int own) {
        Step sum = local(bytes);
        sum.after[moving] = sent;
        sum.after[multiplying] = own;
        steps_.add(streaming, sum);
    }

    const Machine& machine_;
    const Operator& op_;
    const GemmPrices& prices_;
    const Plan& plan_;
    int chunks_, peers_;
    double bytes_, on_links_;
    Steps steps_;
    Step whole_;
    Transfer to_one_, each_;
    /// How much copies to several peers share links: 0 where every peer has its own, near 1 on rings. The
    /// last piece then comes that much later than links that are busy to the end would bring it.
    double shared_;
    bool own_first_, gated_;
    bool in_turn_;    ///< copies to all peers come one after another
    bool waits_;      ///< kernels that move wait for GEMMs
    bool unordered_;  ///< no step's pieces are complete before almost all are
};

/// Estimates of one operator's plans on one machine, each made once. Keeps references to both.
class Estimator {
public:
    Estimator(const Machine& machine, const Operator& op)
        : gemms(machine, op), known_(styles * 16 * 5 * 2, -1) {}

    /// Seconds that a plan takes, transfers pushed or pulled. Ignores: cache, GPUs that are not in step, the
    /// order in which copies of several GPUs meet at one, polls.
    double operator()(const Plan& plan, int chunks, bool push) const {
        double other = -1;
        double& time = place_of(plan, chunks, push, other);
        if (time < 0) time = Unrolled(gemms, plan, chunks, push).seconds();
        return time;
    }
    /// In the faster direction.
    double operator()(const Plan& plan, int chunks) const {
        const double push = (*this)(plan, chunks, true);
        return only_pushes(plan) ? push : std::min(push, (*this)(plan, chunks, false));
    }
    /// Whether DMA copies are pushed: where that is faster; where both are, pulled before a GEMM and pushed
    /// after it. Kernels push.
    bool pushes(const Plan& plan, int chunks) const {
        if (only_pushes(plan)) return true;
        const double push = (*this)(plan, chunks, true), pull = (*this)(plan, chunks, false);
        return gemms.op().gemm_first && plan.style != serial ? push <= pull : push < pull;
    }
    /// The chunk count of 1, 2, 4, 8, 16 with the least estimate, from `least` on.
    int chunks(const Plan& plan, int least) const {
        int best = least;
        for (int count = 2 * least; count <= 16; count *= 2)
            if ((*this)(plan, count) < (*this)(plan, best)) best = count;
        return best;
    }

    const GemmPrices gemms;

private:
    static constexpr std::size_t styles = flag_gated + 1;

    /// Where the estimate is kept; `other` for chunk counts that are no power of two up to 16.
    double& place_of(const Plan& plan, int chunks, bool push, double& other) const {
        std::size_t power = 0;
        while (power < 5 && 1 << power != chunks) ++power;
        if (power == 5) return other;
        std::size_t place = plan.style;
        for (const bool flag : {plan.hetero, plan.fused, plan.columns, plan.by_kernels, push})
            place = 2 * place + (flag ? 1 : 0);
        return known_[5 * place + power];
    }

    mutable std::vector<double> known_;
};

}  // namespace overlap_advice

#endif
