#include "sim/core/error_summary.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace overlap {

ErrorSummary summarise(std::span<const double> errors) {
    if (errors.empty()) return {};
    std::vector<double> magnitudes;
    ErrorSummary summary{.count = errors.size()};
    const auto count = static_cast<double>(errors.size());
    for (const double error : errors) {
        magnitudes.push_back(std::abs(error));
        summary.mean += std::abs(error) / count;
        summary.bias += error / count;
    }
    std::ranges::sort(magnitudes);
    summary.median = magnitudes[(magnitudes.size() - 1) / 2];
    summary.p90 = magnitudes[magnitudes.size() * 9 / 10];
    return summary;
}

}  // namespace overlap
