#pragma once

#include "models/calibration/hip/replay/executor.hpp"

namespace overlap::hip {

/// Fills the inputs with random numbers that depend on the matrix and the place in it, so that the result is
/// that of `serial` and nothing else, and poisons all other memory of the plan.
void fill_inputs(const PlacedPlan& placed);

/// Compares 2,048 random entries a GPU with the product that `serial` computes, done again by a plain kernel
/// from the random numbers themselves, and looks for entries that were not written. An entry may be off by
/// 2^-9 of (its size + 3 standard deviations of such sums) for each rounding to bf16 on its way, of which
/// there is one a chunk and one a rank at most: 2 to 8 % of what an entry from a wrong place is off by.
/// Throws WrongResult.
void check_results(const PlacedPlan& placed);

}  // namespace overlap::hip
