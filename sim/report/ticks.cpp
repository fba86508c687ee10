#include "sim/report/ticks.hpp"

#include <algorithm>
#include <cmath>

namespace overlap {
namespace {

constexpr double rounding = 1e-9;

/// `steps` of every `decades`-th decade.
std::vector<double> within(double low, double high, const std::vector<double>& steps, int decades) {
    std::vector<double> ticks;
    for (int exponent = static_cast<int>(std::floor(std::log10(low))); std::pow(10, exponent) <= high;
         ++exponent)
        for (const double step : steps) {
            const double tick = step * std::pow(10, exponent);
            if (exponent % decades == 0 && tick >= low * (1 - rounding) && tick <= high * (1 + rounding))
                ticks.push_back(tick);
        }
    return ticks;
}

bool apart(const std::vector<double>& ticks, double least_ratio) {
    const auto near = [&](double a, double b) { return b / a < least_ratio; };
    return std::ranges::adjacent_find(ticks, near) == ticks.end();
}

}  // namespace

double round_step(double least) {
    const double decade = std::pow(10, std::floor(std::log10(least)));
    for (const double factor : {1.0, 2.0, 5.0})
        if (factor * decade >= least * (1 - rounding)) return factor * decade;
    return 10 * decade;
}

std::vector<double> linear_ticks(double low, double high, int most) {
    const double step = round_step((high - low) / most);
    std::vector<double> ticks;
    for (double i = std::ceil(low / step - rounding); i * step <= high + rounding * step; ++i)
        ticks.push_back(i * step + 0.0);  // no -0
    return ticks;
}

std::vector<double> log_ticks(double low, double high, double gap) {
    const double least_ratio = std::pow(high / low, gap);
    const std::vector<std::vector<double>> finest_first{{1, 1.5, 2, 3, 5, 7}, {1, 2, 5}, {1, 3}, {1}};
    for (const std::vector<double>& steps : finest_first) {
        const std::vector<double> ticks = within(low, high, steps, 1);
        if (!apart(ticks, least_ratio)) continue;
        return ticks.size() < 2 ? linear_ticks(low, high, 4) : ticks;
    }
    int decades = 2;
    while (!apart(within(low, high, {1}, decades), least_ratio)) ++decades;
    return within(low, high, {1}, decades);
}

}  // namespace overlap
