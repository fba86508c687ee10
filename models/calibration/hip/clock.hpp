#pragma once

#include "models/calibration/hip/machine.hpp"

namespace overlap::hip {

/// Room for `words` clock readings on `gpu`.
double* take_clocks(Machine& machine, int gpu, std::size_t words);

/// Measures the compute units' clock in MHz for 20 µs by a kernel of one thread; the driver's value lags by
/// up to 0.2 s. For the stream's GPU, which must be current.
void count_clock(double* MHz, hipStream_t stream);

/// Waits, at most half a second, until the idle GPU runs at its peak clock. After long GEMMs the power limit
/// keeps the clock down for a while, which would change the next case.
void rest(Machine& machine, int gpu, double* clock);

}  // namespace overlap::hip
