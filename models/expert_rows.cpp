#include "models/expert_rows.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

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
    std::int64_t missing = rows - std::accumulate(result.begin(), result.end(), std::int64_t{0});
    for (std::size_t i = result.size(); missing > 0; --missing) {
        ++result[--i];
        if (i == 0) i = result.size();
    }
    for (std::size_t i = 0; missing < 0; i = (i + 1) % result.size())
        if (result[i] > 0) --result[i], ++missing;
    return result;
}

/// The busiest of `ranks` GPUs when experts are dealt in the order of `rows`.
std::pair<std::int64_t, Rows> busiest(const Rows& rows, std::int64_t ranks) {
    const auto each = static_cast<std::ptrdiff_t>(rows.size()) / static_cast<std::ptrdiff_t>(ranks);
    std::pair<std::int64_t, Rows> most{-1, {}};
    for (auto first = rows.begin(); rows.end() - first >= each; first += each) {
        const std::int64_t sum = std::accumulate(first, first + each, std::int64_t{0});
        if (sum > most.first) most = {sum, Rows(first, first + each)};
    }
    return most;
}

}  // namespace

Rows expert_rows(const ExpertLoad& load) {
    const std::int64_t rows =
        std::max<std::int64_t>(std::llround(load.tokens * static_cast<double>(load.choices)), 1);
    if (load.imbalance == 0) return busiest(balanced(rows, load.experts), load.ranks).second;
    const Rows all = by_power_law(rows, load);
    if (load.ranks == 1) return all;
    constexpr unsigned deals = 9;
    std::vector<std::pair<std::int64_t, Rows>> busy;
    for (unsigned deal = 0; deal < deals; ++deal) {
        Rows dealt = all;
        std::mt19937 random(deal + 1);
        for (std::size_t i = dealt.size(); i > 1; --i) std::swap(dealt[i - 1], dealt[random() % i]);
        busy.push_back(busiest(dealt, load.ranks));
    }
    std::nth_element(busy.begin(), busy.begin() + deals / 2, busy.end());
    return busy[deals / 2].second;
}

}  // namespace overlap
