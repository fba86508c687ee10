#pragma once

#include "sim/importers/iterations.hpp"

namespace overlap {

/// Removes from an iteration the time that ranks wait in their first barrier or collective for the rank that starts
/// last: that kernel becomes as short as on the rank that came last, and what ran before it begins later. Later waiting
/// stays. Returns the longest time removed; 0 where a rank has no such kernel, or ranks have different ones.
Seconds clip_start_skew(Iteration& iteration);

}  // namespace overlap
