#pragma once

#include "models/calibration/hip/machine.hpp"

namespace overlap::hip {

/// Room for `words` clock readings on `gpu`.
double* take_clocks(Machine& machine, int gpu, std::size_t words);

/// Counts the compute units' clock for 20 µs by a kernel of one thread, MHz: what the driver reports lags by
/// up to 0.2 s. For the GPU of the stream, which is current.
void count_clock(double* MHz, hipStream_t stream);

/// Waits, for half a second at most, until the GPU, idle, runs at its peak clock: after long GEMMs the power
/// limit keeps it down for a while, and the next case would be measured at the clock that the one before has
/// left.
void rest(Machine& machine, int gpu, double* clock);

}  // namespace overlap::hip
