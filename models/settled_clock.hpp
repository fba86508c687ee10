#pragma once

#include "models/cost_model.hpp"

namespace overlap {

/// The machine with GEMMs whose arithmetic runs at `speed`, in (0, 1], of that of a cool GPU, as under a clock that the
/// power limit lowers:
///   rates and latencies of GEMMs           · speed
///   attention (of decode not its memory), recorded kernels, a share of a library's collective (clock_share)   · clock_of(machine)
///   HBM, copies, links                     unchanged
///   energy of a FLOP                       · speed^(power_exponent − 1)
/// The slowdown that grows with a kernel's own length (GemmParameters::sustained_slowdown) is off, because `speed`
/// replaces it. Measured GEMM times change by the ratio of the model's.
Machine at_speed(const Machine& machine, double speed);

/// Clock as a fraction of a cool GPU's: speed^clock_exponent (group `energy` of a device). GEMMs lose less than the
/// clock, because the clock of a cool GPU falls within a long GEMM, too.
double clock_of(const Machine& machine);

}  // namespace overlap
