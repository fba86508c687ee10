#pragma once

#include "sim/core/task_graph.hpp"
#include "sim/topology/device.hpp"

namespace overlap {

/// A kernel that streams local memory: local copies, reductions, element-wise operators.
struct Streamed {
    Bytes moved;       ///< read and written
    double units = 0;  ///< compute units that it takes
    Seconds body;      ///< alone
};

/// On as many compute units as its memory can feed, or on `units`. With n units of rate r and memory of rate
/// H (of the last-level cache where all that is moved fits into it and the device file has a rate for it):
///   copies, element-wise   min(n·r, H)
///   reductions             1 / √(1/(n·r)² + 1/H²): every unit waits longer for its loads as memory fills up
/// where a unit's r is of reads and writes that overlap in part (DeviceSpec::Stream). Units that wait for
/// their loads, in reductions and pure reads, are faster where these come from the cache. That is known to be
/// so only up to half of the cache, and from there they count as coming from memory (H200: sums of 3 to 9 MiB
/// gain, of 48 MiB do not). Ignored: atomics, rows of a few bytes, what else is in the cache.
Streamed streamed(const Work& work, const DeviceSpec& device, double units = 0);

}  // namespace overlap
