#pragma once

#include "sim/commands/import_traces.hpp"
#include "sim/commands/trace_advice.hpp"

namespace overlap {

/// A recorded iteration on its machine, with its pairs.
struct PairedIteration {
    const TraceFlags& flags;
    const RecordedRun& recording;
    const Iteration& iteration;
    std::string topology;
    double base_us = 0;  ///< what gains are of
    const std::vector<TracePair>& pairs;
    const ConfigFolder& folder;
};

/// What changes of anything but schedules of pairs would gain in a recorded run: fewer channels of the library's
/// collectives, another degree of tensor parallelism, another machine. GEMMs with shapes and collectives with sizes
/// take their recorded time, times new price over old price; what a collective took beyond its price is waiting, and
/// stays. Throws UserError for a machine of --other-topology that is not known or has another number of GPUs.
std::vector<OtherRun> other_runs(const PairedIteration& of);

}  // namespace overlap
