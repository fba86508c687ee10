#pragma once

namespace overlap {

/// Wall time after which the simgrid engine gives up a simulation, unless the environment sets
/// OVERLAP_SIMGRID_SECONDS.
inline constexpr double default_simgrid_seconds = 300;

}  // namespace overlap
