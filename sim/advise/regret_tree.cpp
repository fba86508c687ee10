#include "sim/advise/regret_tree.hpp"

#include <tbb/parallel_for.h>
#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "sim/core/ranges.hpp"

namespace overlap {
namespace {

using Samples = std::vector<std::size_t>;  ///< scenarios of a node

struct Split {
    std::size_t feature = 0;
    double threshold = 0;
    double cost = std::numeric_limits<double>::infinity();  ///< sum over both sides
};

struct Leaf {
    std::size_t action = 0;
    double cost = 0;  ///< sum over its scenarios of weight · cost
};

/// Number of thresholds tried for the upper of two levels; the lower level tries all.
constexpr std::size_t coarse_thresholds = 12;

/// A value between the two with as few digits as possible, for a readable table.
double between(double low, double high) {
    const double middle = 0.5 * (low + high);
    if (middle == 0) return middle;
    for (int digits = 3; digits <= 12; ++digits) {
        const double scale = std::pow(10.0, digits - 1 - std::floor(std::log10(std::abs(middle))));
        const double rounded = std::round(middle * scale) / scale;
        if (low < rounded && rounded <= high) return rounded;
    }
    return high;
}

class Fitter {
public:
    Fitter(const RegretSamples& samples, const TreeOptions& options) : samples_(samples), options_(options) {
        total_weight_ = std::accumulate(samples.weight.begin(), samples.weight.end(), 0.0);
        for (std::size_t row = 0; row < samples.known.size(); ++row) {
            std::vector<double> costs;
            for (const double regret : samples.regret[row])
                costs.push_back(samples.weight[row] * (std::min(regret, options.worst_regret) +
                                                       (regret > options.hit ? options.miss_cost : 0)));
            costs_.push_back(std::move(costs));
        }
        choose_actions();
    }

    RegretTree fit() {
        Samples all(samples_.known.size());
        std::iota(all.begin(), all.end(), 0);
        tree_.push_back({});
        open(0, std::move(all));
        for (std::size_t leaves = 1; leaves < options_.most_leaves; ++leaves) {
            const auto best = std::ranges::max_element(open_, {}, &Open::gain);
            if (best->gain < options_.least_gain * total_weight_) break;
            divide(static_cast<std::size_t>(best - open_.begin()));
        }
        return std::move(tree_);
    }

private:
    struct Open {
        std::size_t node = 0;
        Samples rows;
        std::optional<Split> split;
        double gain = 0;  ///< per level of the two-level split
    };

    /// Keeps only the useful columns of `costs_`.
    void choose_actions() {
        std::vector<double> best(costs_.size(), std::numeric_limits<double>::infinity());
        while (actions_.size() < std::min(options_.most_actions, samples_.actions)) {
            std::vector<double> sums(samples_.actions);
            for (std::size_t row = 0; row < costs_.size(); ++row)
                for (std::size_t a = 0; a < sums.size(); ++a) sums[a] += std::min(best[row], costs_[row][a]);
            const auto least = std::ranges::min_element(sums);
            const auto action = static_cast<std::size_t>(least - sums.begin());
            if (contains(actions_, action)) break;
            actions_.push_back(action);
            for (std::size_t row = 0; row < costs_.size(); ++row)
                best[row] = std::min(best[row], costs_[row][action]);
        }
        for (std::vector<double>& costs : costs_)
            costs = mapped(actions_, [&](std::size_t action) { return costs[action]; });
    }

    void open(std::size_t node, Samples rows) {
        const Leaf leaf = best_leaf(rows);
        tree_[node].action = actions_[leaf.action];
        Open entry{node, std::move(rows), std::nullopt, 0};
        find_split(entry, leaf.cost);
        open_.push_back(std::move(entry));
    }

    void divide(std::size_t index) {
        const Open entry = std::move(open_[index]);
        open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(index));
        auto [below, above] = parted(entry.rows, *entry.split);
        TreeNode& node = tree_[entry.node];
        node.feature = entry.split->feature;
        node.threshold = entry.split->threshold;
        node.below = tree_.size();
        node.above = tree_.size() + 1;
        tree_.resize(tree_.size() + 2);
        const std::size_t first = tree_.size() - 2;
        open(first, std::move(below));
        open(first + 1, std::move(above));
    }

    std::pair<Samples, Samples> parted(const Samples& rows, const Split& split) const {
        std::pair<Samples, Samples> sides;
        for (const std::size_t row : rows)
            (samples_.known[row][split.feature] < split.threshold ? sides.first : sides.second)
                .push_back(row);
        return sides;
    }

    Leaf best_leaf(const Samples& rows) const {
        std::vector<double> sums(actions_.size());
        for (const std::size_t row : rows)
            for (std::size_t a = 0; a < sums.size(); ++a) sums[a] += costs_[row][a];
        const auto least = std::ranges::min_element(sums);
        return {static_cast<std::size_t>(least - sums.begin()), *least};
    }

    Samples sorted_by(const Samples& rows, std::size_t feature) const {
        Samples sorted = rows;
        std::ranges::stable_sort(sorted, {}, [&](std::size_t row) { return samples_.known[row][feature]; });
        return sorted;
    }

    bool may_cut(const Samples& sorted, std::size_t feature, std::size_t at) const {
        return at >= options_.least_scenarios && sorted.size() - at >= options_.least_scenarios &&
               samples_.known[sorted[at - 1]][feature] < samples_.known[sorted[at]][feature];
    }

    double threshold_at(const Samples& sorted, std::size_t feature, std::size_t at) const {
        return between(samples_.known[sorted[at - 1]][feature], samples_.known[sorted[at]][feature]);
    }

    /// The single split with the lowest cost. Costs change monotonically as rows change sides, so each
    /// feature takes one pass up and one down.
    Split best_split(const Samples& rows) const {
        Split best;
        std::vector<double> sums(actions_.size()), upper;
        for (std::size_t feature = 0; feature < samples_.features; ++feature) {
            const Samples sorted = sorted_by(rows, feature);
            if (!(samples_.known[sorted.front()][feature] < samples_.known[sorted.back()][feature])) continue;
            upper.assign(sorted.size() + 1, 0);
            const auto add = [&](std::size_t row) {
                double least = std::numeric_limits<double>::infinity();
                for (std::size_t a = 0; a < sums.size(); ++a) {
                    sums[a] += costs_[row][a];
                    least = std::min(least, sums[a]);
                }
                return least;
            };
            std::ranges::fill(sums, 0.0);
            for (std::size_t i = sorted.size(); i-- > 0;) upper[i] = add(sorted[i]);
            std::ranges::fill(sums, 0.0);
            for (std::size_t at = 1; at < sorted.size(); ++at) {
                const double cost = add(sorted[at - 1]) + upper[at];
                if (cost < best.cost && may_cut(sorted, feature, at))
                    best = {feature, threshold_at(sorted, feature, at), cost};
            }
        }
        return best;
    }

    /// Cost of a side after its own best split, if that split helps.
    double cost_when_split(const Samples& rows) const {
        return std::min(best_leaf(rows).cost, best_split(rows).cost);
    }

    /// Splits tried at the upper level: quantiles of every feature, and the best single split.
    std::vector<Split> coarse_splits(const Samples& rows) const {
        std::vector<Split> result;
        for (std::size_t feature = 0; feature < samples_.features; ++feature) {
            const Samples sorted = sorted_by(rows, feature);
            double last = -std::numeric_limits<double>::infinity();
            for (std::size_t q = 1; q <= coarse_thresholds; ++q) {
                std::size_t at = q * sorted.size() / (coarse_thresholds + 1);
                while (at < sorted.size() && at > 0 && !may_cut(sorted, feature, at)) ++at;
                if (at == 0 || at >= sorted.size()) continue;
                const double threshold = threshold_at(sorted, feature, at);
                if (threshold > last) result.push_back({feature, threshold, 0});
                last = threshold;
            }
        }
        return result;
    }

    void find_split(Open& entry, double leaf_cost) const {
        if (entry.rows.size() < 2 * options_.least_scenarios) return;
        const Split single = best_split(entry.rows);
        if (single.cost == std::numeric_limits<double>::infinity()) return;
        std::vector<Split> splits = coarse_splits(entry.rows);
        splits.push_back(single);
        tbb::parallel_for(std::size_t{0}, splits.size(), [&](std::size_t i) {
            const auto [below, above] = parted(entry.rows, splits[i]);
            splits[i].cost = cost_when_split(below) + cost_when_split(above);
        });
        entry.split = *std::ranges::min_element(splits, {}, &Split::cost);
        // The two-level split adds three leaves, so its gain counts per leaf.
        entry.gain = std::max(leaf_cost - single.cost, (leaf_cost - entry.split->cost) / 3);
        if (leaf_cost - single.cost > (leaf_cost - entry.split->cost) * single_is_enough)
            entry.split = single;
    }

    /// Fraction of the two-level gain from which the best single split is preferred.
    static constexpr double single_is_enough = 0.9;

    const RegretSamples& samples_;
    const TreeOptions& options_;
    std::vector<std::size_t> actions_;        ///< actions that leaves may use
    std::vector<std::vector<double>> costs_;  ///< [scenario][one of actions_]
    double total_weight_ = 0;
    RegretTree tree_;
    std::vector<Open> open_;
};

}  // namespace

RegretTree fit_tree(const RegretSamples& samples, const TreeOptions& options) {
    assert(!samples.known.empty() && samples.actions > 0);
    assert(samples.known.size() == samples.regret.size() && samples.known.size() == samples.weight.size());
    return Fitter(samples, options).fit();
}

std::size_t action_of(const RegretTree& tree, std::span<const double> known) {
    std::size_t node = 0;
    while (!tree[node].leaf())
        node = known[tree[node].feature] < tree[node].threshold ? tree[node].below : tree[node].above;
    return tree[node].action;
}

std::size_t leaves_of(const RegretTree& tree) {
    return static_cast<std::size_t>(std::ranges::count_if(tree, &TreeNode::leaf));
}

RegretSummary summarise_regrets(std::span<const double> regrets) {
    RegretSummary summary{regrets.size(), 0, 0, 0};
    if (regrets.empty()) return summary;
    for (const double regret : regrets) {
        summary.hit_rate += regret <= TreeOptions().hit;
        summary.mean_regret += regret;
        summary.worst_regret = std::max(summary.worst_regret, regret);
    }
    summary.hit_rate /= static_cast<double>(regrets.size());
    summary.mean_regret /= static_cast<double>(regrets.size());
    return summary;
}

}  // namespace overlap
