#pragma once

#include <span>
#include <vector>

#include "models/calibration/fits/fit_gemm.hpp"

namespace overlap {

/// What is believed of one kernel library where a table mixes several: the fit to all of them. What the chip
/// sets (memory rate, cache, power cap) is held within 5 %, what the library's kernels set may differ: the
/// efficiencies of its tiles by 1.4, its rate by 1.2, prologue, epilogue and tail by 1.5 to 2, and split-K,
/// which some do not have, by 4.
GemmPrior library_prior(const GemmParameters& mixed);

/// One fit for each of `GemmMeasurement::by_library` 1, 2, …, to its rows alone. Nobody tells a library's
/// rows at shapes where another was faster, so each is known best where it is used.
std::vector<GemmFit> fit_libraries(std::span<const GemmMeasurement> rows, const GemmParameters& mixed);

/// Time of the row's kernel by its library's fit; by `mixed` where it has none.
Seconds library_time(const GemmMeasurement& row, const GemmParameters& mixed,
                     std::span<const GemmFit> libraries);

}  // namespace overlap
