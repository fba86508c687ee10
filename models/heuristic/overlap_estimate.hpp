// Estimates the time of overlap schedules by stepping through a plan on one GPU; the static heuristic chooses
// by them. Needs only the standard library (C++11); see overlap_advice.hpp.
#ifndef OVERLAP_ESTIMATE_HPP
#define OVERLAP_ESTIMATE_HPP

#include <algorithm>
#include <cstddef>
#include <vector>

#include "overlap_steps.hpp"

namespace overlap_advice {

/// A plan as steps. All GPUs are assumed to do the same at the same time.
class Unrolled {
public:
    Unrolled(const GemmPrices& prices, const Plan& plan, int chunks, bool push)
        : machine_(prices.machine()),
          op_(prices.op()),
          copies_(machine_.copies(plan.by_kernels)),
          prices_(prices),
          plan_(plan),
          chunks_(chunks),
          peers_(static_cast<int>(machine_.gpus) - 1),
          bytes_(received(machine_, op_)),
          on_links_(time_on_links(push)),
          steps_(machine_, plan.by_kernels, held(), 2 * bytes_ / on_links_),
          whole_(gemm(op_.m, op_.n, op_.k)) {
        const double latency = (push ? copies_.push : copies_.pull).latency;
        to_one_ = Transfer{copies_.peer_latency + (latency - copies_.push.latency),
                           copies_.peer_step + (to_one_peer(plan) ? 0 : copies_.switch_over), copies_.issue};
        each_ = to_one_peer(plan) ? to_one_ : Transfer{latency, copies_.step, to_one_.issue * peers_};
        own_first_ = plan.style != pieces || plan.hetero;
        gated_ = plan.style == flag_gated;
        in_turn_ = machine_.engines.shared && !plan.by_kernels && !to_one_peer(plan);
        shared_ = 1 - std::min(1.0, rate_of(machine_, op_, plan, push) / peers_ / copies_.peer_rate);
        waits_ = machine_.kernels_wait && plan.by_kernels;
        unordered_ = in_turn_ && machine_.engines.unordered && (push || gated_);
        if (plan.style == serial)
            one_after_another();
        else if (op_.gemm_first)
            send();
        else
            gather();
    }

    double seconds() { return steps_.run(); }

private:
    double time_on_links(bool push) const {
        const double on_links = bytes_ / rate_of(machine_, op_, plan_, push);
        if (plan_.by_kernels) return on_links;
        // Column blocks cut rows, which DMA engines copy one by one. This occupies the engine, not the links.
        double run = 0;
        if (plan_.style == pieces && plan_.columns)
            run = (op_.gemm_first    ? op_.output_size * op_.n
                   : op_.tokens_in_k ? op_.operand_size * op_.m
                                     : op_.operand_size * op_.k) /
                  chunks_;
        const double stretch = run > 0 ? 1 + machine_.engines.strided_run / run : 1;
        return std::max(on_links, bytes_ * stretch / machine_.engines.rate);
    }
    /// Compute units held by copy kernels, averaged over moving and launching; for a transfer to one peer,
    /// those of that peer's kernel.
    double held() const {
        if (!plan_.by_kernels) return 0;
        const bool one = to_one_peer(plan_) || sent_apart();
        const double rate = one ? copies_.peer_rate : bytes_ / on_links_;
        const double bytes = (one ? bytes_ / peers_ : bytes_) / (plan_.style == shard_direct ? 1 : chunks_);
        const double moving = bytes / rate;
        return copies_.units / (one ? peers_ : 1) * moving / (moving + copies_.step);
    }
    /// Whether a GEMM's results are sent to each peer as soon as they are finished.
    bool sent_apart() const { return op_.gemm_first && (gemm_a_piece(plan_) || plan_.style == flag_gated); }

    Step gemm(double m, double n, double k, bool accumulate = false) const {
        const GemmCost cost = prices_(m, n, k, accumulate, plan_.style == flag_gated);
        const double time = cost.launch + cost.body;
        return {time * (1 + machine_.slowest) + machine_.launch,
                cost.units_busy,
                cost.traffic / time,
                machine_.dependency,
                // Between 2 waves, whose tiles are all dealt beforehand, and 8, whose tiles are not
                cost.waves <= 4,
                leaves_units(cost, machine_),
                0,
                0,
                {-1, -1, -1}};
    }
    /// GEMM over a fraction of the tokens: rows, or a slab of K.
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
    /// A local kernel that reads and writes `bytes` in total.
    Step local(double bytes) const {
        const double time = bytes / machine_.hbm_rate + machine_.launch + machine_.stream_start;
        return {time, machine_.stream_units, bytes / time, machine_.dependency, false, false, 0,
                0,    {-1, -1, -1}};
    }
    /// s until the last of copies to all peers, issued one at a time and `body` s on the links, is seen.
    double last_of_all(double body) const {
        return to_one_.latency + std::max(body, (peers_ - 1) * to_one_.issue +
                                                    body / on_links_ * bytes_ / peers_ / copies_.peer_rate);
    }

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

    // Transfers first; GEMMs run as their data arrive.
    void gather() {
        const int rounds = to_one_peer(plan_) ? peers_ : plan_.style == shard_direct ? 1 : chunks_;
        const int cuts = around_ring(plan_) ? chunks_ : 1;  // parts of a round's transfer
        const bool one_issued = in_turn_ || (to_one_.issue > 0 && !plan_.by_kernels && !to_one_peer(plan_));
        int gemms = 1;  // per round
        if (plan_.style == ring_chunk) gemms = chunks_;
        if (gemm_a_piece(plan_)) gemms = own_first_ ? peers_ : peers_ + 1;
        if (gated_ && one_issued) gemms = peers_;
        const bool apart = one_issued && gemms >= peers_;  // one transfer for each peer
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

    /// Adds one cut of a round's transfers, which takes `body` s on the links;
    /// appends their step numbers to `come`.
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
        if (waits_ && !gated_ && first && own_first_) {  // launched beside the own part's GEMM
            step.after[multiplying] = 0;
            step.seen = std::max(to_one_.seen(), step.seen - own.work);
        }
        if (waits_ && !gated_ && !first && !to_one_peer(plan_)) {
            // Kernels for the peers that are served first start before the GEMM of the round before begins.
            step.work = work / 2;
            steps_.add(moving, step);
            step.after[multiplying] = first_of_round;
        }
        come.push_back(steps_.add(moving, step));
    }

    // GEMMs first; results are sent as they are finished.
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
        const double launch = gated_ ? 0 : machine_.launch;  // GEMMs right behind another need none
        int sent = -1;
        for (int round = 0; round < rounds; ++round) {
            std::vector<int> made;
            if (packed > 0) step.after[streaming] = packed == 1 ? 0 : round;
            for (int i = 0; i < gemms; ++i) {
                made.push_back(steps_.add(multiplying, step));
                if (round == 0 && i == 0 && packed == 0) step.work -= launch;
                if (by_piece && i < peers_) sent = send_piece(made.back(), rounds * gemms);
            }
            for (int cut = 0; around_ring(plan_) && cut < chunks_; ++cut)
                forward(round, made[plan_.style == ring_chunk ? static_cast<std::size_t>(cut) : 0]);
            if (!by_piece && !around_ring(plan_)) sent = send_shard(rounds, made.back());
            if (reduces() && plan_.style == pieces && !plan_.hetero) sum_up(summed() / rounds, sent, -1);
        }
        step = part(1 / machine_.gpus, false);
        step.work -= launch;
        if (own_first_) steps_.add(multiplying, step);
        if (!reduces() || around_ring(plan_) || (plan_.style == pieces && !plan_.hetero)) return;
        const int sums = gated_ || plan_.style == pieces ? chunks_ : 1, transfers = steps_.count(moving);
        for (int i = 1; i <= sums; ++i)
            sum_up(summed() / sums, i * (transfers / sums) - 1, steps_.count(multiplying) - 1);
    }

    /// Sends to one peer what one GEMM, or one part of a gated GEMM, made for it.
    int send_piece(int made, int gemms) {
        const double alone = bytes_ / peers_ / copies_.peer_rate / chunks_;
        // Copies to other peers hide the start of a copy to one peer, unless one engine serves all peers.
        const double work =
            std::max(on_links_ / chunks_ / peers_ + (in_turn_ ? to_one_.step : 0), to_one_.issue);
        Step piece = transfer(work, to_one_.latency + shared_ * std::max(0.0, alone - work));
        piece.to_its_peer = alone;
        piece.behind = to_one_.step;
        // A gated GEMM frees no units before its end
        piece.after[multiplying] = waits_ && gated_ ? gemms : made;
        return steps_.add(moving, piece);
    }

    /// Sends a round's shard to one peer, or its pieces to all peers.
    int send_shard(int rounds, int made) {
        const bool direct = plan_.style == shard_direct;
        const double alone = on_links_ / rounds + each_.step;
        const double work = std::max(alone, direct ? to_one_.issue : each_.issue);
        const bool apart = plan_.by_kernels && to_one_.issue > 0 && !to_one_peer(plan_);
        Step step = transfer(work, apart ? last_of_all(on_links_ / rounds) - work
                                         : std::max(0.0, each_.seen() + alone - work));
        if (to_one_peer(plan_) || direct) step.seen = to_one_.latency;
        if (direct) {
            step.to_its_peer = bytes_ / peers_ / copies_.peer_rate;
            step.seen += shared_ * std::max(0.0, step.to_its_peer - work);
        }
        step.after[multiplying] = made;
        return steps_.add(moving, step);
    }

    /// Sends a chunk around the ring. The receiver adds it to the result of the next round's GEMM (in the
    /// last round: of the own part).
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
        if (machine_.kernels_wait) sum.units = machine_.compute_units;  // in thread blocks, on whole units
        sum.after[moving] = sent;
        sum.after[multiplying] = own;
        steps_.add(streaming, sum);
    }

    const Machine& machine_;
    const Operator& op_;
    const Copies& copies_;
    const GemmPrices& prices_;
    const Plan& plan_;
    int chunks_, peers_;
    double bytes_, on_links_;
    Steps steps_;
    Step whole_;
    Transfer to_one_, each_;
    /// How much copies to several peers share links, so that the last piece arrives later than links that are busy
    /// until the end would deliver it: 0 if every peer has its own links, near 1 on rings.
    double shared_;
    bool own_first_, gated_;
    bool in_turn_;    ///< copies to all peers run one after another
    bool waits_;      ///< copy kernels wait for GEMMs
    bool unordered_;  ///< a step's pieces are complete only when almost all pieces have arrived
};

/// Cached estimates of one operator's plans on one machine. Keeps references to both.
class Estimator {
public:
    Estimator(const Machine& machine, const Operator& op)
        : gemms(machine, op), known_(styles * 16 * 5 * 2, -1) {}

    /// Time of a plan in s, with transfers pushed or pulled. Ignored: caches, GPUs out of step, whose copies come first, polls.
    double operator()(const Plan& plan, int chunks, bool push) const {
        double other = -1;
        double& time = place_of(plan, chunks, push, other);
        if (time < 0) time = Unrolled(gemms, plan, chunks, push).seconds();
        return time;
    }
    /// In the faster of the two directions.
    double operator()(const Plan& plan, int chunks) const {
        const double push = (*this)(plan, chunks, true);
        return only_pushes(plan) ? push : std::min(push, (*this)(plan, chunks, false));
    }
    /// Whether DMA copies are pushed: the faster direction; on a tie they are pulled before a GEMM and
    /// pushed after it. Kernels push.
    bool pushes(const Plan& plan, int chunks) const {
        if (only_pushes(plan)) return true;
        const double push = (*this)(plan, chunks, true), pull = (*this)(plan, chunks, false);
        return gemms.op().gemm_first && plan.style != serial ? push <= pull : push < pull;
    }
    /// The largest number of chunks: as many as a shard has rows, where rows are cut.
    double most_chunks(const Plan& plan) const {
        const Operator& op = gemms.op();
        return plan.columns
                   ? 16
                   : std::min(16.0, std::floor((op.tokens_in_k ? op.k : op.m) / gemms.machine().gpus));
    }
    /// The chunk count among 1, 2, 4, 8, 16, from `least` up to most_chunks(), with the smallest estimate.
    int chunks(const Plan& plan, int least) const {
        int best = least;
        for (int count = 2 * least; count <= most_chunks(plan); count *= 2)
            if ((*this)(plan, count) < (*this)(plan, best)) best = count;
        return best;
    }

    const GemmPrices gemms;

private:
    static constexpr std::size_t styles = flag_gated + 1;

    /// The cache entry of an estimate; `other` for a chunk count that is no power of two up to 16.
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
