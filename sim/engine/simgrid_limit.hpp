#pragma once

namespace overlap {

/// Wall time that the simgrid engine takes for a simulation before it gives up, unless the environment has
/// OVERLAP_SIMGRID_SECONDS.
inline constexpr double default_simgrid_seconds = 300;

}  // namespace overlap
