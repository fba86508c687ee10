#pragma once

#include <functional>

#include "sim/report/run/result.hpp"
#include "sim/run/candidates.hpp"
#include "sim/run/config_folder.hpp"
#include "sim/run/remarks.hpp"
#include "sim/run/run.hpp"

namespace overlap {

struct RankedCandidate {
    Candidate candidate;
    Seconds makespan;
};

/// Simulates candidates, on all cores, and sorts them, fastest first. Leaves out those that can't run; `refusal` gets
/// the first reason. `simulated` is called after each, by any thread.
std::vector<RankedCandidate> ranked(const Scenario& scenario, const std::vector<Candidate>& candidates,
                                    const std::function<void()>& simulated = nullptr,
                                    std::string* refusal = nullptr);
/// The first of `ranked` for each choice (Candidate::same_choice); at most `most` of them.
std::vector<RankedCandidate> one_of_each_choice(std::span<const RankedCandidate> ranked,
                                                std::size_t most = SIZE_MAX);

/// The kind of loss by which `theirs` exceeds `mine` most, and that difference.
std::pair<std::string, Seconds> largest_difference(const Losses& theirs, const Losses& mine);

/// The execution without overlap that all speed-ups refer to: the fastest `serial`, by DMA copies, kernel
/// copies or the vendor's library, whatever agents are allowed.
struct AdviceBaseline {
    RankedCandidate serial;
    bool allowed = true;        ///< whether it is also a candidate
    bool with_library = false;  ///< whether `serial` by the vendor's library was among those compared

    double speedup(Seconds makespan) const { return serial.makespan / makespan; }
};

/// Whether a choice's `margin` over another, ≥ 0, is less than the expected error of its makespan. Errors of two
/// schedules of one operator go together in part, so this is cautious. None if the error of a price is not known and
/// the others' do not exceed the margin.
std::optional<bool> too_close_to_call(double margin, const Confidence& confidence);
/// What a text says of a margin that is too close to call; empty if it is not too close.
std::string sureness(double margin, const Confidence& confidence);

/// A preset of configs/schedules: a schedule as a library or a paper has it.
struct PresetTime {
    std::string name;
    bool own_kernel;
    Seconds makespan;  ///< with the advice's host, as all candidates
};

/// The presets that serve a pair, with the parameters of their libraries and the host of all candidates; fastest first.
std::vector<PresetTime> presets_of(const Scenario& scenario, const ConfigFolder& folder,
                                   const AllowedCandidates& allowed);

/// Another choice than the best.
struct NextChoice {
    RankedCandidate choice;
    double margin = 0;       ///< by which it takes longer than the best, ≥ 0
    std::string decided_by;  ///< the loss in which both differ most
    Seconds difference;      ///< in that loss
};

/// The choice that is the fastest when clocks have settled, with its time then.
struct SteadyChoice {
    RankedCandidate choice;
    double gain = 0;  ///< by which it is faster than the best of a cool GPU
};

/// Advice for one scenario: all candidates simulated, and the best ones as full runs.
struct SimulatedAdvice {
    std::string scenario;  ///< one line for reports
    Json topology, workload;
    std::string
        host;  ///< who enqueues, in all rows: a name in configs/hosts; empty: all is enqueued beforehand by one thread
    Remarks remarks;                      ///< the what-if, and notes on the best candidate's run
    std::vector<RankedCandidate> ranked;  ///< fastest first; equal ones in the order of candidates_for
    AdviceBaseline baseline;
    /// The fastest of each choice (Candidate::same_choice), fastest first; as many as asked for.
    std::vector<RankedCandidate> choices;
    std::vector<RunResult> best;                 ///< their full runs; speed-ups refer to `baseline`
    std::optional<RankedCandidate> shard_level;  ///< the fastest schedule of whole shards, if allowed
    std::optional<RankedCandidate>
        by_library_kernels;                 ///< the fastest that needs no kernel of the user's own
    std::vector<PresetTime> presets;        ///< those that serve the pair, fastest first
    std::optional<NextChoice> next_choice;  ///< the fastest that is another choice than the best
    /// Where the workload repeats until clocks have settled and another choice is the fastest then. None as well where
    /// the power of its work is not known.
    std::optional<SteadyChoice> in_steady_state;
    std::string
        vendors_library;  ///< the vendor's collective library: "RCCL", "NCCL 2.29.2"; empty: none known
};

/// Throws UserError if no schedule serves the scenario, or no allowed candidate does. `top` ≥ 1
/// choices are run in full. `simulated` is called, by any thread, after each simulated candidate: at
/// most most_simulated() times.
SimulatedAdvice advise(const Scenario& scenario, const ConfigFolder& folder, std::size_t top,
                       const AllowedCandidates& allowed = {},
                       const std::function<void()>& simulated = nullptr);
std::size_t most_simulated(const Scenario& scenario, std::size_t top);

std::string to_text(const SimulatedAdvice& advice);
Json to_json(const SimulatedAdvice& advice);
Json advice_schema();
/// A header, and one row for each candidate.
std::string to_csv(const SimulatedAdvice& advice);
/// One row. `best`: the makespan that its regret refers to; `pair`: the pair of a list that it is for; empty: all.
/// `confidence`: of a run of the same choice; null if there is none.
std::string csv_row(std::size_t rank, const RankedCandidate& one, Seconds best,
                    const AdviceBaseline& baseline, const std::string& pair, const Confidence* confidence,
                    const Remarks& remarks);

}  // namespace overlap
