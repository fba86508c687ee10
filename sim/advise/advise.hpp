#pragma once

#include <functional>

#include "sim/advise/heuristic.hpp"
#include "sim/compare/measured_case.hpp"
#include "sim/report/run/remarks.hpp"

namespace overlap {

struct RankedCandidate {
    Candidate candidate;
    Seconds makespan;
};

/// The static heuristic's advice. `regret` is relative to the best allowed candidate; none if the
/// advice itself is not allowed.
struct HeuristicAdvice {
    RankedCandidate said;
    std::optional<double> regret;
};

/// The execution without overlap that all speed-ups refer to: the fastest `serial`, by DMA copies, kernel
/// copies or the vendor's library, whatever agents are allowed.
struct AdviceBaseline {
    RankedCandidate serial;
    bool allowed = true;  ///< whether it is also a candidate

    double speedup(Seconds makespan) const { return serial.makespan / makespan; }
};

/// Advice for one scenario: all candidates simulated, the best ones as full runs, and the
/// static heuristic's advice.
struct SimulatedAdvice {
    std::string scenario;  ///< one line for reports
    Json topology, workload, what_if;
    Remarks remarks;                      ///< on the best candidate's run
    std::vector<RankedCandidate> ranked;  ///< fastest first; equal ones in the order of candidates_for
    AdviceBaseline baseline;
    /// Full runs of the first of `ranked`; serial time and speed-up refer to the baseline
    std::vector<RunResult> best;
    std::optional<RankedCandidate> shard_level;        ///< the fastest schedule of whole shards, if allowed
    std::optional<HeuristicAdvice> heuristic;          ///< with any kernels
    std::optional<HeuristicAdvice> heuristic_library;  ///< with library kernels, so without flag_gated
    /// The loss in which the best candidate and the next other schedule differ most, and that difference.
    std::string deciding_loss;
    Seconds decided_by;
    std::size_t runner_up = 0;  ///< index in `ranked`; 0: there is no other schedule
    std::optional<RunResult> runner_up_run;
};

/// Throws UserError if no schedule serves the scenario, or none uses an agent in `agents`. `top` ≥ 1
/// candidates are run in full. `simulated` is called, by any thread, after each simulated candidate: at
/// most most_simulated() times.
SimulatedAdvice advise(const Scenario& scenario, const ConfigFolder& folder, std::size_t top,
                       std::span<const std::string> agents = {},
                       const std::function<void()>& simulated = nullptr);
std::size_t most_simulated(const Scenario& scenario, std::size_t top);

std::string to_text(const SimulatedAdvice& advice);
Json to_json(const SimulatedAdvice& advice);
/// A header, and one row for each candidate.
std::string to_csv(const SimulatedAdvice& advice);

/// Advice judged by measured makespans, restricted to the measured variants of each scenario.
struct MeasuredJudgement {
    RegretSummary simulation, heuristic;
    /// Scenarios left out because the advised variant was not measured
    std::size_t heuristic_not_measured = 0;
};
/// `predicted` is called, by any thread, for each case.
MeasuredJudgement judge_measured(const std::vector<MeasuredCase>& cases, const ConfigFolder& folder,
                                 const std::function<void()>& predicted = nullptr);
std::string to_text(const MeasuredJudgement& judgement);

}  // namespace overlap
