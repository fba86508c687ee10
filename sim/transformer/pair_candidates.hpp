#pragma once

#include "sim/advise/advise.hpp"
#include "sim/schedules/listed_pairs.hpp"

namespace overlap {

/// From this many GPUs on, ways that are far behind are not cut finer, or simulated in the list.
inline constexpr int many_gpus = 32;

/// A pair of a list and the candidates for it, fastest alone first.
class PairCandidates {
public:
    /// `alone`: a run of `serial` with the pair as its workload, on the list's machine, or on that of one `group` of
    /// the pair's collective. `all`: all candidates that are allowed instead of a few that stand for them.
    PairCandidates(std::size_t first, const RankGroup& group, Scenario alone,
                   const AllowedCandidates& allowed, bool all);

    /// These candidates for a pair that is alike and has the same group, in another place or another list.
    PairCandidates at(std::size_t first) const {
        PairCandidates moved = *this;
        moved.first_ = first;
        return moved;
    }

    bool empty() const { return ranked_.empty(); }
    const RankedCandidate& chosen() const { return ranked_[chosen_]; }
    const Candidate& candidate(std::size_t place) const { return ranked_[place].candidate; }
    void choose(std::size_t candidate) { chosen_ = candidate; }
    std::optional<std::size_t> find(const std::string& label) const;
    /// The candidate with that label, if there is one.
    void choose(const std::string& label) { chosen_ = find(label).value_or(chosen_); }
    const std::vector<RankedCandidate>& ranked() const { return ranked_; }
    std::size_t choice() const { return chosen_; }
    /// The fastest `serial` alone, if there is one.
    std::optional<std::size_t> fastest_serial() const;
    /// Candidates worth trying in the list: the fastest of the first few choices (Candidate::same_choice), the fastest
    /// `serial`, and that with the label `serial`.
    std::vector<std::size_t> alternatives(const std::string& serial) const;
    /// The chosen candidate in the list; none if its label is `serial`, because operators without a choice run that
    /// way.
    std::optional<PairChoice> in_list(const std::string& serial) const;
    /// Time alone of the fastest `serial` over that of the chosen candidate, minus 1.
    double gain() const;
    /// The kind of loss by which the next choice exceeds the chosen one most, and that difference; none if there is
    /// no other choice.
    std::optional<std::pair<std::string, Seconds>> decided_by(Baselines& baselines) const;

private:
    /// All candidates; of many GPUs, those of several chunks only where two are not far behind.
    void rank(const std::vector<Candidate>& candidates);
    /// The fastest candidate of which `fits` is true.
    template <class Fits>
    std::optional<std::size_t> first_that(Fits fits) const;

    std::size_t first_;
    RankGroup group_;
    Scenario alone_;
    std::vector<RankedCandidate> ranked_;
    std::size_t chosen_ = 0;
};

}  // namespace overlap
