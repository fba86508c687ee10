#pragma once

#include "sim/advise/heuristic.hpp"

namespace overlap {

struct RankedCandidate {
    Candidate candidate;
    Seconds makespan;
};

/// Advice for one scenario: every candidate simulated, the best run in full, and the static heuristic beside.
struct SimulatedAdvice {
    std::string scenario;  ///< one line for people
    Json topology, workload;
    std::vector<RankedCandidate> ranked;  ///< the fastest first; equal ones in the order of candidates_for
    std::vector<RunResult> best;          ///< the first of `ranked`, in full
    std::optional<RankedCandidate> serial, shard_level;  ///< the fastest of their kind, where allowed
    std::optional<RankedCandidate> heuristic;            ///< what it says of library kernels and of any
    std::optional<RankedCandidate> heuristic_library;
    /// Largest difference of a loss between the best and the next schedule that is another one, and the loss.
    std::string deciding_loss;
    Seconds decided_by;
    std::size_t runner_up = 0;  ///< in `ranked`; 0: there is no other schedule
    std::optional<RunResult> runner_up_run;
};

/// Throws UserError where no schedule serves the scenario, or `agents` names none. `top` ≥ 1 runs in full.
SimulatedAdvice advise(const Scenario& scenario, const ConfigFolder& folder, std::size_t top,
                       std::span<const std::string> agents = {});

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
