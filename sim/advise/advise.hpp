#pragma once

#include <functional>

#include "sim/advise/heuristic.hpp"

namespace overlap {

struct RankedCandidate {
    Candidate candidate;
    Seconds makespan;
};

/// What the static heuristic says. `regret` is against the best of what was allowed, and none where what it
/// says is not.
struct HeuristicAdvice {
    RankedCandidate said;
    std::optional<double> regret;
};

/// The one execution without overlap that all speed-ups are over: the fastest of `serial`, by copies of DMA
/// engines or kernels and by the vendor's library, whatever agents were asked for.
struct AdviceBaseline {
    RankedCandidate serial;
    bool allowed = true;  ///< it is a candidate, too

    double speedup(Seconds makespan) const { return serial.makespan / makespan; }
};

/// Advice for one scenario: every candidate simulated, the best run in full, and the static heuristic beside.
struct SimulatedAdvice {
    std::string scenario;  ///< one line for people
    Json topology, workload;
    std::vector<RankedCandidate> ranked;  ///< the fastest first; equal ones in the order of candidates_for
    AdviceBaseline baseline;
    std::vector<RunResult> best;  ///< the first of `ranked`, in full; serial and speed-up are the baseline's
    std::optional<RankedCandidate> shard_level;        ///< the fastest of its kind, where allowed
    std::optional<HeuristicAdvice> heuristic;          ///< of any kernels
    std::optional<HeuristicAdvice> heuristic_library;  ///< of library kernels: flag_gated is not among them
    /// Largest difference of a loss between the best and the next schedule that is another one, and the loss.
    std::string deciding_loss;
    Seconds decided_by;
    std::size_t runner_up = 0;  ///< in `ranked`; 0: there is no other schedule
    std::optional<RunResult> runner_up_run;
};

/// Throws UserError where no schedule serves the scenario, or `agents` names none. `top` ≥ 1 runs in full.
/// `simulated` is called, by any thread, as often as a candidate has been simulated: most_simulated() times at
/// most.
SimulatedAdvice advise(const Scenario& scenario, const ConfigFolder& folder, std::size_t top,
                       std::span<const std::string> agents = {},
                       const std::function<void()>& simulated = nullptr);
std::size_t most_simulated(const Scenario& scenario, std::size_t top);

std::string to_text(const SimulatedAdvice& advice);
Json to_json(const SimulatedAdvice& advice);
/// Header and a row a candidate.
std::string to_csv(const SimulatedAdvice& advice);

/// Advice judged by measured makespans, restricted to the measured variants of each scenario.
struct MeasuredJudgement {
    RegretSummary simulation, heuristic;
    std::size_t heuristic_not_measured = 0;  ///< scenarios whose advised variant was not measured: left out
};
MeasuredJudgement judge_measured(std::span<const std::string> traces, const ConfigFolder& folder);
std::string to_text(const MeasuredJudgement& judgement);

}  // namespace overlap
