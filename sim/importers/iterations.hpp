#pragma once

#include "sim/importers/trace_importer.hpp"

namespace overlap {

/// One pass of the work that a recording repeats.
struct Iteration {
    std::string name;  ///< "ProfilerStep#3", or its number
    std::vector<RecordedSpan> spans;

    /// Spans on one timeline. The first span of each clock is at 0, because hosts start ranks at different
    /// times and clocks differ. The time that a rank waits for a later rank is therefore included.
    Timeline timeline() const;
    /// From the first start on any clock to the last one, as recorded.
    Seconds starts_apart() const;
};

/// How a recording is divided into iterations.
struct Iterations {
    std::vector<Iteration> all;  ///< at least one
    std::string found_by;  ///< "steps of torch.profiler"; empty if there is one iteration and no sign of more
    /// Whether the repeated parts may be parts of one run instead of runs.
    bool ambiguous = false;
    std::size_t outside = 0;  ///< spans outside all iterations
    std::string doubt;        ///< why an iteration may not be a whole run; usually empty
};

/// Divides a recording at the steps that its profiler marked. Each step, or the whole recording, is divided
/// further into as many parts as it has multiples of `gemms`, the GEMMs of one run on a GPU, if known; in
/// each stream the parts must have the same kernels in the same order. If neither is known, the number of
/// parts is the number of repetitions common to all streams. Throws UserError if GPUs ran a multiple of
/// `gemms` that streams do not repeat. Needs at least one span.
Iterations find_iterations(std::vector<RecordedSpan> spans, std::optional<std::size_t> gemms);

/// Indices of the iterations that took at most 1.5 times the median, on as many GPUs as any iteration. This
/// leaves out iterations in which a rank waited for another that started late.
std::vector<std::size_t> steady_iterations(const std::vector<Iteration>& iterations);

/// Removes from an iteration the time that ranks wait in their first barrier or collective for the rank that starts
/// last: that kernel becomes as short as on the rank that came last, and what ran before it begins later. Later waiting
/// stays. Returns the longest time removed; 0 where a rank has no such kernel, or ranks have different ones.
Seconds clip_start_skew(Iteration& iteration);

}  // namespace overlap
