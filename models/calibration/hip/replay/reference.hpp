#pragma once

#include "models/calibration/hip/replay/executor.hpp"

namespace overlap::hip {

/// Fills the inputs with random numbers that depend on matrix and position, so that only the result of
/// `serial` is correct, and poisons all other memory of the plan.
void fill_inputs(const PlacedPlan& placed);

/// Compares 2,048 random entries a GPU with the product that `serial` computes, recomputed by a plain kernel
/// from the random numbers, and looks for entries that were not written. Tolerance of an entry: 2^-9 of (its
/// size + 3 standard deviations of such sums) for each rounding to bf16, at most one a chunk and one a rank.
/// This is 2 to 8 % of the error of an entry from a wrong position. Throws WrongResult.
void check_results(const PlacedPlan& placed);

}  // namespace overlap::hip
