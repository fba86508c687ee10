#pragma once

#include "sim/core/graph_size.hpp"
#include "sim/run/scenario.hpp"

namespace overlap {

/// Size, memory and time of a run, estimated before any graph is built.
struct RunBudget {
    GraphSize graph;         ///< of the schedule, exact but for edges of lists with pairs that are cut
    Bytes memory;            ///< peak, with the graph of `serial`: an upper bound, up to three times too high
    double simulations = 1;  ///< upper bound: the run, its counterfactuals and its baseline, with every seed
    Seconds wall;            ///< where few tasks share links, see wall_of
};
RunBudget budget_of(const Scenario& scenario);

/// Time on the machine of README's speeds, within a factor of five if it takes 1 s or more: RunBudget::wall, and what
/// it costs that many copy kernels share links. Builds the graph, unless it is large.
Seconds wall_of(const Scenario& scenario, const RunBudget& budget);
/// The output of --dry-run.
Json to_json(const RunBudget& budget, Seconds wall);

/// Throws UserError if a run takes more memory than `available`.
void require_affordable(const RunBudget& budget, Bytes available);

}  // namespace overlap
