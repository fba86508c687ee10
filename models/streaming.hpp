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

/// Whose kernel streams. In schedules the operands of copies and sums come from memory, although a GEMM or a peer
/// wrote them shortly before: on 2 H100, 32 sums beside which nothing ran lasted as long as memory takes, and the
/// operands of 20 of these would have fit into the cache (traces/h100_2). A benchmark that repeats a kernel on the
/// same operands finds them in the cache, and its sum has one load of 16 bytes a thread in flight. A sum of a
/// schedule has four, as copies have, so that memory limits it: the time of sums that ran alone grows by their bytes
/// / 2.88 TB/s on H100 and 4.03 on H200 (spans of traces/h100_2/overlap and h200_4/overlap, 254 and 190 sums), where
/// memory copies 2.90 and 4.01 and the benchmark's sums move 2.2 to 2.6 and 2.9 to 3.4.
enum class KernelOf { schedule, benchmark };

/// Runs on as many compute units as memory can feed, or on `units`; sums and pure reads have thread blocks on all units.
/// The rate with n units of rate r and memory of rate H:
///   copies, element-wise, sums of schedules        min(n·r, H)
///   copies by given `units`                        (1/(n·r)⁶ + 1/H⁶)^(−1/6), a rounded corner: 64 MiB by 32 blocks take 57 us on H100
///                                                  where units and memory need 47 each (traces/h100_1, h100_2), 50 on H200
///   pure reads, sums of benchmarks, frameworks     1 / √(1/(n·r)² + 1/H²): each unit waits longer for its loads as memory
///                                                  fills up
/// r counts reads and writes that overlap in part (DeviceSpec::Stream). H is the rate of the last-level cache
/// if all moved bytes fit into it, the device file has a rate for it, and `kernel` is a benchmark's. Element-wise operators
/// are priced with operands in the cache, which no schedule's trace has shown. Units that wait for their loads are faster
/// when the loads come from the cache. Measured up to half of the cache; larger operands count as coming from memory
/// (H200: sums of 3 to 9 MiB gain, sums of 48 MiB do not). Ignored: atomics, rows of a few bytes, other contents of the
/// cache (sums of 4 to 17 MB a part take 2 to 3 us less than by memory on H100, not on H200).
Streamed streamed(const Work& work, const DeviceSpec& device, double units = 0,
                  KernelOf kernel = KernelOf::schedule);

/// Time from the launch of a kernel that streams local memory until its first bytes have come. Packs and scatters begin
/// later than plain copies; sums and pure reads wait longer for their first loads.
Seconds start_of(const Work& work, const DeviceSpec& device);

}  // namespace overlap
