#pragma once

#include <cstddef>
#include <span>

namespace overlap {

/// Summary of errors, predicted / measured − 1.
struct ErrorSummary {
    std::size_t count = 0;
    double mean = 0;    ///< of the magnitudes
    double median = 0;  ///< of the magnitudes
    double p90 = 0;     ///< of the magnitudes
    double bias = 0;    ///< mean with sign
};
ErrorSummary summarise(std::span<const double> errors);

}  // namespace overlap
