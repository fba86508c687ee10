#include "models/expert_rows.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <numeric>
#include <random>
#include <tuple>
#include <utility>

namespace overlap {
namespace {

using Rows = std::vector<std::int64_t>;

Rows balanced(std::int64_t rows, std::int64_t experts) {
    Rows result(static_cast<std::size_t>(experts), rows / experts);
    const std::int64_t rest = rows % experts;
    for (std::int64_t i = 0; i < rest; ++i) ++result[static_cast<std::size_t>(i * experts / rest)];
    return result;
}

/// Quantile `u` of the density x^-a on [low, high].
double power_law(double u, double low, double high, double a) {
    if (std::abs(a - 1) < 1e-9) return low * std::pow(high / low, u);
    const double from = std::pow(low, 1 - a), to = std::pow(high, 1 - a);
    return std::pow((to - from) * u + from, 1 / (1 - a));
}

/// With ones more for the most loaded experts, the last, or ones less for the least.
Rows adding_up_to(std::int64_t rows, Rows result) {
    std::int64_t missing = rows - std::accumulate(result.begin(), result.end(), std::int64_t{0});
    for (std::size_t i = result.size(); missing > 0; --missing) {
        ++result[--i];
        if (i == 0) i = result.size();
    }
    for (std::size_t i = 0; missing < 0; i = (i + 1) % result.size())
        if (result[i] > 0) --result[i], ++missing;
    return result;
}

/// From the least to the most loaded expert.
Rows by_power_law(std::int64_t rows, const ExpertLoad& load) {
    const bool many = rows > load.experts;
    const double low = many ? 1 : 0.01, high = many ? std::max(0.8 * load.tokens, 1.0) : 2;
    std::vector<double> shares(static_cast<std::size_t>(load.experts));
    for (std::size_t i = 0; i < shares.size(); ++i)
        shares[i] = power_law((static_cast<double>(i) + 0.5) / static_cast<double>(shares.size()), low, high,
                              load.imbalance);
    const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
    Rows result;
    for (const double share : shares) result.push_back(std::llround(share / sum * static_cast<double>(rows)));
    return adding_up_to(rows, std::move(result));
}

/// Binomial quantiles, from the least to the most loaded expert.
Rows at_random(std::int64_t rows, const ExpertLoad& load) {
    const double tokens = std::max(std::round(load.tokens), 1.0);
    const double share = static_cast<double>(load.choices) / static_cast<double>(load.experts);
    if (share >= 1) return balanced(rows, load.experts);
    // Probabilities over that of the mean, as far from it as they are not negligible.
    const double mean = std::floor(tokens * share), far = 10 * std::sqrt(mean) + 10;
    const auto next_over = [&](double count) { return (tokens - count) / (count + 1) * share / (1 - share); };
    std::deque<double> weights{1};
    double least = mean;
    for (; least > std::max(mean - far, 0.0); --least)
        weights.push_front(weights.front() / next_over(least - 1));
    for (double count = mean; count < std::min(mean + far, tokens); ++count)
        weights.push_back(weights.back() * next_over(count));
    const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
    Rows result;
    std::size_t more = 0;
    double up_to = weights.front();
    for (std::int64_t i = 0; i < load.experts; ++i) {
        const double quantile = (static_cast<double>(i) + 0.5) / static_cast<double>(load.experts) * all;
        while (up_to < quantile && more + 1 < weights.size()) up_to += weights[++more];
        result.push_back(static_cast<std::int64_t>(least) + static_cast<std::int64_t>(more));
    }
    return adding_up_to(rows, std::move(result));
}

/// Rows of all experts when they are dealt to GPUs in the order of `rows`, and those of the busiest GPU.
struct Deal {
    std::int64_t most = -1;
    Rows rows;  ///< the busiest GPU's first, in whose place are those of the first GPU
};

Deal with_busiest_first(Rows rows, std::int64_t ranks) {
    const auto each = static_cast<std::ptrdiff_t>(rows.size()) / static_cast<std::ptrdiff_t>(ranks);
    Deal deal;
    auto busiest = rows.begin();
    for (auto first = rows.begin(); rows.end() - first >= each; first += each) {
        const std::int64_t sum = std::accumulate(first, first + each, std::int64_t{0});
        if (sum > deal.most) {
            deal.most = sum;
            busiest = first;
        }
    }
    if (busiest != rows.begin()) std::swap_ranges(rows.begin(), rows.begin() + each, busiest);
    deal.rows = std::move(rows);
    return deal;
}

/// Rows of all experts, the busiest GPU's first.
Rows dealt_rows(const ExpertLoad& load) {
    const std::int64_t rows =
        std::max<std::int64_t>(std::llround(load.tokens * static_cast<double>(load.choices)), 1);
    if (load.imbalance == 0 && !load.random)
        return with_busiest_first(balanced(rows, load.experts), load.ranks).rows;
    const Rows all = load.random ? at_random(rows, load) : by_power_law(rows, load);
    if (load.ranks == 1) return all;
    constexpr unsigned deals = 9;
    std::vector<Deal> dealt;
    for (unsigned deal = 0; deal < deals; ++deal) {
        Rows order = all;
        std::mt19937 random(deal + 1);
        for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
        dealt.push_back(with_busiest_first(std::move(order), load.ranks));
    }
    std::nth_element(dealt.begin(), dealt.begin() + deals / 2, dealt.end(), [](const Deal& a, const Deal& b) {
        return std::tie(a.most, a.rows) < std::tie(b.most, b.rows);
    });
    return dealt[deals / 2].rows;
}

Rows of_first_gpu(Rows rows, const ExpertLoad& load) {
    rows.resize(static_cast<std::size_t>(load.experts / load.ranks));
    return rows;
}

/// Experts that one token wants, each once, with scores that grow with how often it wants them.
struct Wanted {
    std::vector<std::pair<std::int64_t, std::int64_t>> experts;  ///< expert, score

    void add(std::int64_t expert) {
        for (auto& [known, score] : experts)
            if (known == expert) {
                score = 2 * score + 1;
                return;
            }
        experts.emplace_back(expert, 1);
    }
    bool has(std::int64_t expert) const {
        return std::any_of(experts.begin(), experts.end(),
                           [&](const auto& one) { return one.first == expert; });
    }
};

/// DeepSeek V3's gate: 4 of 8 groups of experts are kept.
struct GroupGate {
    static constexpr std::int64_t groups = 8, kept_groups = 4;
    std::int64_t size;  ///< experts of a group

    std::array<bool, groups> kept(const Wanted& wanted) const {
        std::array<std::int64_t, groups> best{}, second{};
        for (const auto& [expert, score] : wanted.experts) {
            const auto group = static_cast<std::size_t>(expert / size);
            second[group] = std::max(second[group], std::min(best[group], score));
            best[group] = std::max(best[group], score);
        }
        std::array<std::size_t, groups> order{};
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
            return best[a] + second[a] > best[b] + second[b];
        });
        std::array<bool, groups> result{};
        for (std::int64_t i = 0; i < kept_groups; ++i) result[order[static_cast<std::size_t>(i)]] = true;
        return result;
    }

    /// Adds the rows of one token: its wanted experts of kept groups, then the lowest experts of these groups.
    void route(const Wanted& wanted, std::int64_t choices, Rows& rows) const {
        const std::array<bool, groups> keep = kept(wanted);
        const auto in_kept = [&](std::int64_t expert) {
            return keep[static_cast<std::size_t>(expert / size)];
        };
        std::int64_t left = choices;
        for (const auto& [expert, score] : wanted.experts)
            if (in_kept(expert)) ++rows[static_cast<std::size_t>(expert)], --left;
        for (std::int64_t expert = 0; left > 0; ++expert)
            if (in_kept(expert) && !wanted.has(expert)) ++rows[static_cast<std::size_t>(expert)], --left;
    }
};

}  // namespace

Rows expert_rows(const ExpertLoad& load) {
    return of_first_gpu(dealt_rows(load), load);
}

Rows group_limited_rows(const ExpertLoad& load) {
    const GroupGate gate{load.experts / GroupGate::groups};
    if (load.experts % GroupGate::groups != 0 || load.choices > gate.size * GroupGate::kept_groups)
        return expert_rows(load);
    const std::int64_t tokens = std::max<std::int64_t>(std::llround(load.tokens), 1);
    // Balanced: choices are `apart` experts apart. Power law: experts in the order of their rows, each as often as it
    // has rows; choice i of token t is number i * tokens + t of these.
    const std::int64_t apart = (load.experts + load.choices - 1) / load.choices;
    std::vector<std::int64_t> assigned;
    if (load.imbalance != 0) {
        const Rows rows = dealt_rows(load);
        Rows order(rows.size());
        std::iota(order.begin(), order.end(), std::int64_t{0});
        const auto of = [&](std::int64_t expert) { return rows[static_cast<std::size_t>(expert)]; };
        std::stable_sort(order.begin(), order.end(),
                         [&](std::int64_t a, std::int64_t b) { return of(a) > of(b); });
        for (const std::int64_t expert : order)
            assigned.insert(assigned.end(), static_cast<std::size_t>(of(expert)), expert);
    }
    Rows result(static_cast<std::size_t>(load.experts));
    for (std::int64_t token = 0; token < tokens; ++token) {
        Wanted wanted;
        const std::int64_t first = tokens >= apart ? token : token * apart / tokens;
        for (std::int64_t i = 0; i < load.choices; ++i)
            wanted.add(load.imbalance == 0 ? (first + i * apart) % load.experts
                                           : assigned[static_cast<std::size_t>(i * tokens + token)]);
        gate.route(wanted, load.choices, result);
    }
    return of_first_gpu(std::move(result), load);
}

}  // namespace overlap
