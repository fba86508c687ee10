#pragma once

#include <vector>

namespace overlap {

/// Round numbers to label an axis with: multiples of 1, 2 or 5 times a power of ten. At most `most` steps.
std::vector<double> linear_ticks(double low, double high, int most);

/// The same on a logarithmic axis (0 < low < high): 1, 1.5, 2, 3, 5 and 7 of each decade, or as many of them
/// as leave neighbours `gap` of the axis' length apart; linear ones where less than two are within a short
/// axis.
std::vector<double> log_ticks(double low, double high, double gap);

}  // namespace overlap
