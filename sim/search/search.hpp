#pragma once

#include <functional>

#include "sim/run/candidates.hpp"
#include "sim/run/config_folder.hpp"
#include "sim/search/genome.hpp"
#include "sim/search/robust.hpp"

namespace overlap {

struct SearchOptions {
    AllowedCandidates allowed = {};
    bool executable = false;            ///< only what `replay` executes
    std::optional<Bytes> staging = {};  ///< most memory for stages and partial results on a GPU
    double budget = 8;                  ///< s
    std::uint64_t seed = 0;
    int draws = 1000;
    std::vector<SearchDimension>
        free;  ///< what may change; all else is as in the listed schedule that a search begins with
};

/// A change on the way from the best listed schedule to the one that was found.
struct Reason {
    std::string dimension;  ///< "start", or one of dimension_names
    std::string change;
    Seconds gain;
};

struct SearchEffort {
    std::size_t simulated = 0, pruned = 0;
    std::string ended = "converged";  ///< or "budget"
};

struct SearchResult {
    std::string scenario;  ///< one line for reports
    std::string listed;    ///< the best listed schedule
    Seconds listed_makespan;
    Seconds makespan;  ///< of `plan`, which is the listed schedule's where nothing faster was found
    bool found = false;
    Seconds ideal;
    GainDraws draws;
    PriceErrors errors;
    std::vector<std::string> steps;  ///< of the schedule found, in words
    std::vector<Reason> reasons;  ///< one for each dimension, the largest gain first; their sum is the gain
    Bytes staging;
    Plan plan;
    SearchEffort effort;

    double gain() const { return listed_makespan / makespan - 1; }
    /// Whether nine of ten draws gain.
    bool is_robust() const { return found && draws.p10 > 0; }
    /// Share of the time between the best listed schedule and ideal.
    double closed() const;
};

/// Searches a schedule for the scenario's pair that is faster than all listed ones. Deterministic by seed, unless the
/// budget ends it. Throws UserError if it doesn't know how to cut the pair, or nothing is allowed. `simulated` is called
/// after each simulation, by any thread.
SearchResult search(const Scenario& scenario, const ConfigFolder& folder, const SearchOptions& options,
                    const std::function<void()>& simulated);

std::string to_text(const SearchResult& result);
Json to_json(const SearchResult& result);
Json search_schema();

}  // namespace overlap
