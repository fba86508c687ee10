#pragma once

#include "sim/run/scenario.hpp"

namespace overlap {

/// Size, memory and time of a run.
struct RunBudget {
    double tasks = 0, edges = 0;  ///< of all GPUs, by the run's schedule
    bool at_least =
        false;     ///< graphs were not built beyond what memory is available; then the rest is too small, too
    Bytes memory;  ///< peak, with the graph of `serial`: an upper bound, up to three times too high
    double simulations = 1;
    /// On the machine of README's speeds, within a factor of five if it takes 1 s or more.
    Seconds wall;
};

/// Builds the run's graph and that of `serial` to measure them, each no further than until it alone takes more than
/// `available`.
RunBudget budget_of(const Scenario& scenario, Bytes available);
/// Simulations at most: the run, its counterfactuals and its baseline, with every seed.
double most_simulations(const Scenario& scenario);
/// The output of --dry-run.
Json to_json(const RunBudget& budget);

/// Throws UserError if a run takes more memory than `available`.
void require_affordable(const RunBudget& budget, Bytes available);

}  // namespace overlap
