#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace overlap {

/// Scenarios to learn from: what is known of each beforehand, and what every action would cost there.
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
    double miss_cost = 0.05;           ///< what a miss costs beyond its regret
    double worst_regret = 1;           ///< regret counts up to this much
    /// Leaves choose among so many actions: those that, each scenario taking its best one, cost least
    /// together (found greedily). Fewer learn less by heart.
    std::size_t most_actions = 24;
    /// A split must lower the mean cost by so much: one that gains less is noise.
    double least_gain = 2e-4;
};

/// Node 0 is the root. An inner node sends a scenario with known[feature] < threshold to `below`, others to
/// `above`; a leaf has `below` = 0 and takes `action`.
struct TreeNode {
    std::size_t feature = 0;
    double threshold = 0;
    std::size_t below = 0, above = 0;
    std::size_t action = 0;
    bool leaf() const { return below == 0; }
};
using RegretTree = std::vector<TreeNode>;

/// A tree whose leaves' actions cost least on the samples: mean regret plus miss_cost for each miss. Grown a
/// split at a time, always the one that gains most; each is looked for two levels deep, since a single split
/// sees no exclusive or. Thresholds are midway between neighbouring values, with as few digits, from three
/// on, as separate them. Deterministic. Needs one scenario and one action at least (asserted). Not optimal: a
/// greedy tree can be beaten by a search over all trees, which is exponential.
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
RegretSummary summarise_regrets(std::span<const double> regrets, double hit = 0.02);

}  // namespace overlap
