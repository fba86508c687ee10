#pragma once

#include <span>
#include <vector>

#include "sim/calibrate/fits/fit_gemm.hpp"

namespace overlap {

/// Prior of one kernel library in a table that mixes several: the fit to the mix. Properties of the chip
/// (memory rate, cache, power cap) stay within 5 %. Properties of the kernels may differ: tile
/// efficiencies by a factor of 1.4, rate by 1.2, prologue, epilogue and tail by 1.5 to 2, split-K, which
/// some libraries lack, by 4.
GemmPrior library_prior(const GemmParameters& mixed);

/// One fit for each of `GemmMeasurement::by_library` 1, 2, …, to the rows of that library. The
/// table has no times of a library at shapes where another library was faster, so each fit is best
/// where its library is used.
std::vector<GemmFit> fit_libraries(std::span<const GemmMeasurement> rows, const GemmParameters& mixed);

/// Kernel time of a row by the fit of its library, or by `mixed` if it has none.
Seconds library_time(const GemmMeasurement& row, const GemmParameters& mixed,
                     std::span<const GemmFit> libraries);

}  // namespace overlap
