#pragma once

#include "sim/confidence/evidence.hpp"

namespace overlap {

/// The content of the files of one kind of GPU.
struct GpuFiles {
    Json device, calibration;
};

/// Takes away errors that were measured on another machine than the one that is priced; what was measured there counts as
/// derived. `topology`: content of the machine's file. `now`: the files that price the run; `fitted`: the same as they
/// were when their values were measured.
///
/// Work of one GPU needs that GPU: its facts and its fit. What happens between GPUs also needs the links and the number
/// of GPUs in the calibration's "measured_on".
void claim_what_was_measured(MachineEvidence& evidence, const Json& topology, const GpuFiles& now,
                             const GpuFiles& fitted);

}  // namespace overlap
