#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace overlap {

/// Scenarios to learn from: the features of each, and the regret of every action.
struct RegretSamples {
    std::size_t features = 0, actions = 0;
    std::vector<std::vector<double>> known;   ///< [scenario][feature], finite
    std::vector<std::vector<double>> regret;  ///< [scenario][action], time / best time − 1, ≥ 0
    std::vector<double> weight;               ///< [scenario], > 0
};

struct TreeOptions {
    std::size_t most_leaves = 16;
    std::size_t least_scenarios = 12;  ///< in a leaf
    double hit = 0.02;                 ///< largest regret that counts as a hit
    double miss_cost = 0.05;           ///< cost of a miss in addition to its regret
    double worst_regret = 1;           ///< cap of a regret
    /// Number of actions that leaves choose from: those with the lowest total cost when each scenario takes
    /// its best one (found greedily). A smaller number reduces overfitting.
    std::size_t most_actions = 24;
    /// Least reduction of the mean cost by a split; smaller gains are noise.
    double least_gain = 2e-4;
};

/// Node 0 is the root. An inner node sends a scenario with known[feature] < threshold to `below`, all others
/// to `above`. A leaf has `below` = 0 and an `action`.
struct TreeNode {
    std::size_t feature = 0;
    double threshold = 0;
    std::size_t below = 0, above = 0;
    std::size_t action = 0;
    bool leaf() const { return below == 0; }
};
using RegretTree = std::vector<TreeNode>;

/// Fits a tree that minimises mean regret plus miss_cost for each miss. It grows by one split at a time,
/// the one with the largest gain, found two levels deep because a single split can't see an exclusive or.
/// A threshold lies between neighbouring values and has the fewest digits (three or more) that separate
/// them. Deterministic. Needs at least one scenario and one action (asserted). Greedy, so not optimal; an
/// optimal search is exponential.
RegretTree fit_tree(const RegretSamples& samples, const TreeOptions& options);

/// The leaf's action for a scenario.
std::size_t action_of(const RegretTree& tree, std::span<const double> known);

/// Leaves of a tree.
std::size_t leaves_of(const RegretTree& tree);

struct RegretSummary {
    std::size_t scenarios = 0;
    double hit_rate = 0;     ///< share of scenarios with regret ≤ hit
    double mean_regret = 0;  ///< uncapped
    double worst_regret = 0;
};
RegretSummary summarise_regrets(std::span<const double> regrets);

}  // namespace overlap
