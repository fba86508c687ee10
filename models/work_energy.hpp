#pragma once

#include <optional>
#include <span>

#include "models/cost_model.hpp"
#include "sim/core/energy.hpp"

namespace overlap {

/// What the work of one task takes, on whatever GPUs: `compute`, `hbm`, `links`,
/// `copy_kernels`; the other parts are of a run and 0 here.
///   compute      = FLOPs of a GEMM · pJ a FLOP of its type
///   hbm          = bytes that the task demands of any HBM · pJ a byte
///   links        = bytes that come from one GPU to another · pJ a byte
///   copy_kernels = those of kernels · pJ a byte more
/// Bytes between GPUs are counted where they arrive, however many links they cross. None where the device has
/// no constants (DeviceSpec::Energy), none of the GEMM's type, or there are NICs, whose energy is not known.
///
/// H200: constants from bursts of GEMMs and from copies (traces/h200_2/energy), errors held out in
/// configs/calibrations/h200.json. Ignores: FLOPs of sums and element-wise operators apart from their bytes,
/// DMA engines apart from links, which they always use together, data (random there; zeros take less),
/// temperature, that HBM reads and writes may differ, and that GEMMs on few units take a tenth more a FLOP.
std::optional<Energy> work_energy(const Task& task, const Cost& cost, const Machine& machine);

/// The share of a power limit's effect that a graph sees, in [0, 1]: as the clock does in time
/// (GemmParameters::sustained_time), 0 for a few milliseconds and 1 for seconds of GEMMs without a pause.
double power_limited_share(const TaskGraph& graph, const Machine& machine);

}  // namespace overlap
