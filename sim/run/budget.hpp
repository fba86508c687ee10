#pragma once

#include "sim/core/graph_size.hpp"
#include "sim/run/scenario.hpp"

namespace overlap {

/// What a run takes, estimated before any graph is built.
struct RunBudget {
    GraphSize graph;  ///< of the schedule, exactly
    Bytes memory;     ///< at its peak, with the graph of `serial`: not more, but up to three times less
    double simulations = 1;  ///< at most: of the run, its counterfactuals and its baseline, with every seed
    Seconds wall;  ///< on the machine of README's speeds: within a factor of five, where it takes 1 s
};
RunBudget budget_of(const Scenario& scenario);

/// What --dry-run says of it.
Json to_json(const RunBudget& budget);

/// Throws UserError where a run takes more memory than `available`.
void require_affordable(const RunBudget& budget, Bytes available);

}  // namespace overlap
