#pragma once

#include <optional>

#include "models/cost_model.hpp"
#include "sim/core/energy.hpp"

namespace overlap {

/// Energy of one task's work, whatever GPUs it uses: `compute`, `hbm`, `links`, `copy_kernels`. The other
/// parts belong to a run and are 0 here.
///   compute      = FLOPs of a GEMM or of attention · pJ a FLOP of its type · gemm_speed^(power_exponent − 1)
///                  (of a framework's sum: bytes read and written · extra pJ a byte)
///   hbm          = bytes that the task demands of any HBM · pJ a byte
///   links        = bytes between GPUs · pJ a byte
///   copy_kernels = bytes between GPUs that kernels, or a library's collectives, move · extra pJ a byte
/// Bytes between GPUs are counted where they arrive, however many links they cross. None if the
/// device has no constants (DeviceEnergy) or none of the GEMM's type, or if the machine has
/// NICs, whose energy is unknown.
///
/// H200: constants from bursts of GEMMs and from copies (traces/h200_2/energy), held-out errors in
/// configs/calibrations/h200.json. Ignored: FLOPs of sums and element-wise operators (only their bytes
/// count), DMA engines apart from the links they use, data (random there; zeros take less), temperature,
/// differences between HBM reads and writes, and that GEMMs on few units take a tenth more energy a FLOP.
std::optional<Energy> work_energy(const Task& task, const Cost& cost, const Machine& machine);

/// Fraction of a power limit's effect that a graph sees, in [0, 1]. It grows with time like the clock effect
/// (GemmParameters::sustained_time): 0 for a few milliseconds, 1 for seconds of GEMMs without a pause.
double power_limited_share(const TaskGraph& graph, const Machine& machine);

}  // namespace overlap
