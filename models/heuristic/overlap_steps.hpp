// Steps of a plan on one GPU that stands for all: GEMMs, transfers and local kernels. Each kind runs in
// order; steps wait for each other and slow each other down. Needs only the standard library (C++11).
#ifndef OVERLAP_STEPS_HPP
#define OVERLAP_STEPS_HPP

#include <algorithm>
#include <cstddef>
#include <vector>

#include "overlap_machine.hpp"

namespace overlap_advice {

constexpr double forever = 1e200, instant = 1e-12;  // s
constexpr double least_rate = 0.05;                 // lowest relative rate of a step, so that every step ends

enum Lane { multiplying, moving, streaming, lane_count };

struct Step {
    double work;          ///< s when the step runs alone
    double units, bytes;  ///< compute units and bytes/s of HBM that the step uses when it runs alone
    double seen;          ///< s after the end until steps of other lanes may start
    bool few_waves;       ///< for a GEMM
    bool leaves_units;    ///< for a GEMM: some compute units stay free until its end
    /// For a transfer to one of several peers: its least time in s, whatever goes to other peers, and the gap
    /// in s after the previous transfer to the same peer (as many steps earlier as there are peers). 0: a
    /// transfer to all peers, or a lone one.
    double to_its_peer, behind;
    int after[lane_count];  ///< the step of each lane that this step waits for; -1: none
};

/// Times in s of copies to all peers, or to one: of an empty copy, of each further copy, and
/// between two issues by the host.
struct Transfer {
    double latency, step, issue;
    /// s from the end of the bytes until the end is seen.
    double seen() const { return latency - step; }
};

/// A step of the lane `moving`, to all peers.
inline Step transfer(double work, double seen) {
    return {work, 0, 0, seen, false, false, 0, 0, {-1, -1, -1}};
}

class Steps {
public:
    /// `held`: compute units that a transfer's kernels hold (with `in_flight`: of each transfer; else of all
    /// together); `moved`: bytes/s of HBM that transfers use.
    Steps(const Machine& machine, bool by_kernels, double held, double moved)
        : machine_(machine),
          copies_(machine.copies(by_kernels)),
          by_kernels_(by_kernels),
          in_flight_(false),
          held_(held),
          moved_(moved) {}

    void count_in_flight() { in_flight_ = true; }
    /// Returns the step's number in its lane.
    int add(Lane lane, const Step& step) {
        steps_[lane].push_back(step);
        return count(lane) - 1;
    }
    int count(Lane lane) const { return static_cast<int>(steps_[lane].size()); }

    /// Runs all steps; returns the time in s until the last one ends.
    double run() {
        for (int lane = 0; lane < lane_count; ++lane) {
            end_[lane].assign(steps_[lane].size(), forever);
            next_[lane] = 0;
            active_[lane] = false;
            free_[lane] = 0;
        }
        find_waited_for();
        double last = 0;
        now_ = 0;
        for (;;) {
            double until = start_ready();
            double rate[lane_count];
            find_rates(rate);
            for (int lane = 0; lane < lane_count; ++lane)
                if (active_[lane]) until = std::min(until, now_ + left_[lane] / rate[lane]);
            if (until >= forever) return last;
            const double passed = until - now_;
            now_ = until;
            for (int lane = 0; lane < lane_count; ++lane) {
                if (!active_[lane]) continue;
                left_[lane] -= passed * rate[lane];
                if (left_[lane] > instant) continue;
                active_[lane] = false;
                free_[lane] = now_ + (waited_for_[lane][next_[lane]] ? machine_.event : 0);
                end_[lane][next_[lane]] = lane == moving ? come_at(next_[lane]) : now_;
                last = std::max(
                    last, lane == moving ? end_[lane][next_[lane]] + steps_[lane][next_[lane]].seen : now_);
                ++next_[lane];
            }
        }
    }

private:
    /// Marks kernels that steps of other lanes wait for: an event is recorded after them.
    void find_waited_for() {
        for (int lane = 0; lane < lane_count; ++lane) waited_for_[lane].assign(steps_[lane].size(), false);
        for (int lane = 0; lane < lane_count; ++lane)
            for (const Step& step : steps_[lane])
                for (int other = 0; other < lane_count; ++other)
                    if (other != lane && step.after[other] >= 0 && (other != moving || by_kernels_))
                        waited_for_[other][static_cast<std::size_t>(step.after[other])] = true;
    }

    /// When the steps that `step` waits for are done and seen.
    double waits_until(int lane, const Step& step) const {
        double ready = 0;
        for (int other = 0; other < lane_count; ++other) {
            if (step.after[other] < 0) continue;
            const std::size_t place = static_cast<std::size_t>(step.after[other]);
            // A transfer that forwards another waits until it has arrived; a stream just continues.
            const bool waits = other != lane || lane == moving;
            ready = std::max(ready, end_[other][place] + (waits ? steps_[other][place].seen : 0));
        }
        return ready;
    }

    /// When the bytes of the transfer that ends its turn now have arrived.
    double come_at(std::size_t place) const {
        const Step& step = steps_[moving][place];
        if (step.to_its_peer == 0) return now_;
        const std::size_t peers = static_cast<std::size_t>(machine_.gpus) - 1;
        const double before = place >= peers ? end_[moving][place - peers] + step.behind : 0;
        return std::max(now_, std::max(before, waits_until(moving, step)) + step.to_its_peer);
    }

    /// Whether a GEMM runs that leaves kernels no compute unit until its end, or until its last wave.
    bool gemm_holds_all() const {
        return active_[multiplying] && !steps_[multiplying][next_[multiplying]].leaves_units;
    }

    /// Starts all steps that can start; returns when the next step is ready. Kernels that wait for a GEMM's
    /// units start before the next GEMM.
    double start_ready() {
        static const Lane order[] = {moving, streaming, multiplying};
        double soon = forever;
        for (const Lane lane : order) {
            if (active_[lane] || next_[lane] == steps_[lane].size()) continue;
            const double ready = std::max(free_[lane], waits_until(lane, steps_[lane][next_[lane]]));
            const bool kernel = lane == streaming || (lane == moving && by_kernels_);
            if (ready > now_ + instant) {
                soon = std::min(soon, ready);
            } else if (!(kernel && machine_.kernels_wait && gemm_holds_all())) {
                active_[lane] = true;
                left_[lane] = steps_[lane][next_[lane]].work;
            }
        }
        return soon;
    }

    /// Transfers that are ready or under way, at most one a peer.
    double transfers_in_flight() const {
        const double peers = machine_.gpus - 1;
        double count = 0;
        for (std::size_t i = next_[moving]; i < steps_[moving].size() && count < peers; ++i, ++count) {
            const int made = steps_[moving][i].after[multiplying];
            if (made >= 0 &&
                end_[multiplying][static_cast<std::size_t>(made)] + machine_.dependency > now_ + instant)
                break;
        }
        for (std::size_t i = next_[moving]; i-- > 0 && count < peers; ++count)
            if (end_[moving][i] < now_) break;
        return count;
    }

    /// Whether copy kernels only get the units that the GEMM leaves.
    bool keeps_units(const Step& gemm) const {
        return by_kernels_ && machine_.kernels_wait && gemm.leaves_units;
    }

    void find_rates(double (&rate)[lane_count]) const {
        rate[multiplying] = rate[moving] = rate[streaming] = 1;
        if (!active_[multiplying]) {
            if (active_[streaming] && active_[moving])
                rate[streaming] = std::max(least_rate, 1 - moved_ / machine_.hbm_rate);
            return;
        }
        const Step& gemm = steps_[multiplying][next_[multiplying]];
        double units = machine_.compute_units, memory = machine_.hbm_rate, top = 1;
        if (active_[moving]) {
            const double wanted = held_ * (in_flight_ ? transfers_in_flight() : 1);
            const double left = keeps_units(gemm) ? units - gemm.units : units,
                         taken = std::min(wanted, left);
            units -= taken + machine_.compute_units * copies_.units_lost;
            memory -= moved_;
            top -= copies_.gemm_lost;
            if (gemm.few_waves && gemm.units > units) top = std::min(top, 1 - copies_.few_waves_lost);
            rate[moving] = 1 - copies_.copies_lost;
            if (taken < wanted) rate[moving] *= taken / wanted;
        }
        if (active_[streaming]) {  // takes what the GEMM leaves, or half
            const Step& local = steps_[streaming][next_[streaming]];
            const double taken = std::min(local.units, std::max(units / 2, units - gemm.units));
            const double bytes = std::max(memory / 2, memory - gemm.bytes);
            rate[streaming] = std::min(1.0, std::min(taken / local.units, bytes / local.bytes));
            units -= taken;
            memory -= rate[streaming] * local.bytes;
        }
        const double shared = std::min(units / gemm.units, memory / gemm.bytes);
        rate[multiplying] = std::max(least_rate, std::min(top, shared));
    }

    const Machine& machine_;
    const Copies& copies_;
    bool by_kernels_, in_flight_;
    double held_, moved_;
    std::vector<Step> steps_[lane_count];
    std::vector<double> end_[lane_count];
    std::vector<bool> waited_for_[lane_count];
    std::size_t next_[lane_count];
    bool active_[lane_count];
    double free_[lane_count], left_[lane_count];
    double now_;
};

}  // namespace overlap_advice

#endif
