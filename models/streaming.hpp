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

/// Where a kernel's operands are. Those of copies and sums in schedules come from memory, although a GEMM or a peer wrote
/// them shortly before: on 2 H100, 32 sums beside which nothing ran lasted as long as memory takes, and the operands of 20
/// of these would have fit into the cache (traces/h100_2). A benchmark that repeats a kernel finds them in the cache.
enum class OperandsIn { memory, cache };

/// Runs on as many compute units as memory can feed, or on `units`. The rate with n units of rate r and memory of rate H
/// is min(n·r, H); by given `units` (1/(n·r)⁶ + 1/H⁶)^(−1/6), a rounded corner: 64 MiB by 32 blocks take 57 us on H100 where
/// units and memory need 47 each (traces/h100_1, h100_2), 50 on H200. H is the rate of the last-level cache if all moved
/// bytes fit into it, the device file has a rate for it, and the operator is element-wise or its operands are there.
/// Ignored: that sums and pure reads wait for their loads, faster reads than writes, atomics, rows of a few bytes, other
/// contents of the cache. In measured schedules these are worth less than 0.1 points.
Streamed streamed(const Work& work, const DeviceSpec& device, double units = 0,
                  OperandsIn operands = OperandsIn::memory);

/// Time from the launch of a kernel that streams local memory until its first bytes have come; sums and
/// pure reads wait longer for their first loads.
Seconds start_of(const Work& work, const DeviceSpec& device);

}  // namespace overlap
