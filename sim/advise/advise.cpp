#include "sim/advise/advise.hpp"

#include <tbb/parallel_for.h>
#include <algorithm>
#include <array>
#include <utility>

namespace overlap {
namespace {

std::vector<RankedCandidate> ranked(const Scenario& scenario, const std::vector<Candidate>& candidates) {
    std::vector<std::optional<Seconds>> times(candidates.size());
    std::vector<std::string> refusals(candidates.size());
    tbb::parallel_for(std::size_t{0}, candidates.size(), [&](std::size_t i) {
        try {
            times[i] = predict(with_candidate(scenario, candidates[i])).makespan;
        } catch (const UserError& error) {
            refusals[i] = error.what();  // more chunks than rows, say
        }
    });
    std::vector<RankedCandidate> result;
    for (std::size_t i = 0; i < candidates.size(); ++i)
        if (times[i]) result.push_back({candidates[i], *times[i]});
    if (result.empty()) throw UserError("no schedule serves this scenario: " + refusals.front());
    std::stable_sort(result.begin(), result.end(),
                     [](const auto& a, const auto& b) { return a.makespan < b.makespan; });
    return result;
}

std::optional<RankedCandidate> fastest(const std::vector<RankedCandidate>& all,
                                       std::span<const std::string> names) {
    for (const RankedCandidate& one : all)
        if (std::find(names.begin(), names.end(), one.candidate.schedule) != names.end()) return one;
    return std::nullopt;
}

void explain(const Scenario& scenario, SimulatedAdvice& advice) {
    const auto other = std::find_if(advice.ranked.begin(), advice.ranked.end(), [&](const auto& one) {
        return one.candidate.schedule != advice.ranked.front().candidate.schedule;
    });
    if (other == advice.ranked.end()) return;
    advice.runner_up = static_cast<std::size_t>(other - advice.ranked.begin());
    advice.runner_up_run = run(with_candidate(scenario, other->candidate));
    const Losses &mine = advice.best.front().losses, &theirs = advice.runner_up_run->losses;
    const std::array<std::pair<const char*, Seconds>, 7> differences{
        {{"contention", theirs.contention - mine.contention},
         {"launch", theirs.launch - mine.launch},
         {"packing", theirs.packing - mine.packing},
         {"decomposition", theirs.decomposition - mine.decomposition},
         {"pattern", theirs.pattern - mine.pattern},
         {"fill_drain", theirs.fill_drain - mine.fill_drain},
         {"unattributed", theirs.unattributed - mine.unattributed}}};
    const auto most = std::max_element(differences.begin(), differences.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    advice.deciding_loss = most->first;
    advice.decided_by = most->second;
}

void ask_heuristic(const Scenario& scenario, const ConfigFolder& folder, SimulatedAdvice& advice) {
    const Pair* pair = scenario.workload.pair();
    if (pair == nullptr || pair->order == Order::independent || pair->gathers_results() ||
        scenario.machine->topology.nodes() > 1)
        return;
    const auto machine = MachineConstants(scenario.machine->topology.name(), folder).of(pair->gemm.dtype);
    const auto simulated = [&](bool own_kernels) {
        const Candidate said = shipped_advice(machine, heuristic_operator(*pair), own_kernels);
        return RankedCandidate{said, predict(with_candidate(scenario, said)).makespan};
    };
    advice.heuristic = simulated(true);
    advice.heuristic_library = simulated(false);
}

}  // namespace

SimulatedAdvice advise(const Scenario& scenario, const ConfigFolder& folder, std::size_t top,
                       std::span<const std::string> agents) {
    const std::array<std::string, 1> serial{"serial"};
    const std::array<std::string, 2> shard_level{"shard_p2p", "shard_direct"};
    SimulatedAdvice advice;
    advice.topology = scenario.machine->topology.name();
    advice.workload = to_json(scenario.workload);
    advice.ranked = ranked(scenario, candidates_for(scenario.workload, scenario.machine->topology, agents));
    for (std::size_t i = 0; i < std::min(top, advice.ranked.size()); ++i)
        advice.best.push_back(run(with_candidate(scenario, advice.ranked[i].candidate)));
    advice.scenario = advice.best.front().scenario;
    advice.serial = fastest(advice.ranked, serial);
    advice.shard_level = fastest(advice.ranked, shard_level);
    explain(scenario, advice);
    ask_heuristic(scenario, folder, advice);
    return advice;
}

}  // namespace overlap
