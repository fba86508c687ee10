#pragma once

#include "sim/core/task_graph.hpp"
#include "sim/topology/device.hpp"

namespace overlap {

/// A kernel that streams local memory: local copies, reductions, element-wise operators.
struct Streamed {
    Bytes moved;       ///< read and written
    double units = 0;  ///< that the kernel uses
    Seconds body;      ///< time alone
};

/// Where copies and reductions find their operands. In schedules the operands come from memory, although a GEMM or a peer
/// wrote them shortly before: on 2 H100, 32 sums beside which nothing ran lasted as long as memory takes, and the operands
/// of 20 of these would have fit into the cache (traces/h100_2). A benchmark that repeats a kernel on the same operands
/// finds them in the cache.
enum class OperandPlace { in_memory, in_cache };

/// Runs on as many compute units as memory can feed, or on `units`. The rate with n units of
/// rate r and memory of rate H:
///   copies, element-wise   min(n·r, H)
///   sums, pure reads       1 / √(1/(n·r)² + 1/H²): each unit waits longer for its loads as memory fills up
/// r counts reads and writes that overlap in part (DeviceSpec::Stream). H is the rate of the last-level cache
/// if all moved bytes fit into it, the device file has a rate for it, and `operands` says so. Element-wise operators are
/// priced with operands in the cache, which no schedule's trace has shown. Units that wait for their loads
/// (reductions, pure reads) are faster when the loads come from the cache. Measured up to half of the cache;
/// larger operands count as coming from memory (H200: sums of 3 to 9 MiB gain, sums of 48 MiB do not).
/// Ignored: atomics, rows of a few bytes, other contents of the cache.
Streamed streamed(const Work& work, const DeviceSpec& device, double units = 0,
                  OperandPlace operands = OperandPlace::in_memory);

/// Time from the launch of a kernel that streams local memory until its first bytes have come. Packs and scatters begin
/// later than plain copies; sums and pure reads wait longer for their first loads.
Seconds start_of(const Work& work, const DeviceSpec& device);

}  // namespace overlap
