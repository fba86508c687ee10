#pragma once

#include <vector>

namespace overlap {

/// The smallest of 1, 2, 5 times a power of ten that is at least `least`.
double round_step(double least);

/// Round numbers for axis labels: multiples of 1, 2 or 5 times a power of ten. At most `most` steps.
std::vector<double> linear_ticks(double low, double high, int most);

/// Ticks of a logarithmic axis (0 < low < high): 1, 1.5, 2, 3, 5 and 7 of each decade, as
/// far as neighbours stay `gap` of the axis' length apart. A short axis with fewer than two of
/// these gets linear ticks.
std::vector<double> log_ticks(double low, double high, double gap);

}  // namespace overlap
