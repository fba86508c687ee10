#include "sim/transformer/pair_candidates.hpp"

#include <algorithm>

#include "sim/core/ranges.hpp"

namespace overlap {
namespace {

/// Whether the candidate is one of the few that represent all: cut by rows, into one of two numbers of chunks.
bool stands_for_others(const Candidate& candidate) {
    return !candidate.algorithm.empty() ||
           (!candidate.schedule.ends_with("_2d") &&
            (candidate.chunks == 0 || candidate.chunks == 2 || candidate.chunks == 8));
}

}  // namespace

PairCandidates::PairCandidates(std::size_t first, const RankGroup& group, Scenario alone,
                               const AllowedCandidates& allowed, bool all)
    : first_(first), group_(group), alone_(std::move(alone)) {
    const Topology& topology = alone_.machine->topology;
    std::vector<Candidate> candidates;
    for (const auto& some :
         {candidates_for(alone_.workload, topology), library_candidates(alone_.workload, topology)})
        for (const Candidate& one : some)
            if (allowed.has(one) && (all || stands_for_others(one))) candidates.push_back(one);
    rank(candidates);
}

void PairCandidates::rank(const std::vector<Candidate>& candidates) {
    constexpr int coarse = 2;         // chunks
    constexpr double far_behind = 2;  // times the fastest, where finer pieces take longer still
    std::vector<Candidate> first, finer;
    const bool many = alone_.machine->topology.gpus() >= many_gpus;
    for (const Candidate& one : candidates) (many && one.chunks > coarse ? finer : first).push_back(one);
    ranked_ = overlap::ranked(alone_, first);
    std::erase_if(finer, [&](Candidate one) {
        one.chunks = coarse;
        const auto found = std::ranges::find(ranked_, one, &RankedCandidate::candidate);
        return found != ranked_.end() && found->makespan > far_behind * ranked_.front().makespan;
    });
    append(ranked_, overlap::ranked(alone_, finer));
    std::ranges::stable_sort(ranked_, {}, &RankedCandidate::makespan);
}

std::vector<std::size_t> PairCandidates::alternatives(const std::string& serial) const {
    constexpr std::size_t most_choices = 4;
    std::vector<std::size_t> found;
    bool with_serial = false;
    for (std::size_t i = 0; i < ranked_.size(); ++i) {
        const Candidate& one = ranked_[i].candidate;
        const bool is_new = std::ranges::none_of(
            found, [&](std::size_t other) { return ranked_[other].candidate.same_choice(one); });
        const bool fastest_serial = one.schedule == "serial" && !with_serial;
        with_serial = with_serial || fastest_serial;
        if ((is_new && found.size() < most_choices) || fastest_serial || one.label() == serial)
            found.push_back(i);
    }
    return found;
}

template <class Fits>
std::optional<std::size_t> PairCandidates::first_that(Fits fits) const {
    const auto found = std::ranges::find_if(ranked_, fits, &RankedCandidate::candidate);
    if (found == ranked_.end()) return std::nullopt;
    return static_cast<std::size_t>(found - ranked_.begin());
}

std::optional<std::size_t> PairCandidates::find(const std::string& label) const {
    return first_that([&](const Candidate& one) { return one.label() == label; });
}

std::optional<PairChoice> PairCandidates::in_list(const std::string& serial) const {
    if (chosen().candidate.label() == serial) return std::nullopt;
    const Scenario run = with_candidate(alone_, chosen().candidate);
    return PairChoice{first_, *alone_.workload.pair(), run.schedule, run.params, group_};
}

std::optional<std::size_t> PairCandidates::fastest_serial() const {
    return first_that([](const Candidate& one) { return one.schedule == "serial"; });
}

double PairCandidates::gain() const {
    const std::optional<std::size_t> serial = fastest_serial();
    return serial ? ranked_[*serial].makespan / chosen().makespan - 1 : 0;
}

std::optional<std::pair<std::string, Seconds>> PairCandidates::decided_by(Baselines& baselines) const {
    const Candidate& mine = chosen().candidate;
    const auto next = first_that([&](const Candidate& one) { return !one.same_choice(mine); });
    if (!next) return std::nullopt;
    const RunOptions numbers{false, &baselines};
    const auto losses = [&](const Candidate& one) {
        return run(with_candidate(alone_, one), numbers).losses;
    };
    return largest_difference(losses(candidate(*next)), losses(mine));
}

}  // namespace overlap
