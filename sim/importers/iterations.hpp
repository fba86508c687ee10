#pragma once

#include "sim/importers/trace_importer.hpp"

namespace overlap {

/// One pass of the work that a recording repeats.
struct Iteration {
    std::string name;  ///< "ProfilerStep#3", or its number
    std::vector<RecordedSpan> spans;

    /// Spans on one timeline. The first span of each clock is at 0, since the starts of ranks differ by how
    /// their hosts came along and by their clocks: the time that a rank waits for a later one is in it.
    Timeline timeline() const;
    /// From the first start of a clock to the last one, as recorded.
    Seconds starts_apart() const;
};

/// How a recording falls into iterations.
struct Iterations {
    std::vector<Iteration> all;  ///< at least one
    std::string found_by;        ///< "steps of torch.profiler"; empty where there is one and no sign of more
    /// What repeats may be parts of one run as well as runs.
    bool ambiguous = false;
    std::size_t outside = 0;  ///< spans of no iteration
    std::string doubt;        ///< why an iteration may be no whole run; mostly empty
};

/// Cuts a recording where its profiler marked steps; each part, or all, into as many as it has times the
/// GEMMs that one run has on a GPU (`gemms`, where it is known), in each stream the same kernels in the same
/// order; and where neither is known, into as many as all streams repeat. Throws UserError where GPUs ran a
/// multiple of `gemms` that streams do not repeat. At least one span.
Iterations find_iterations(std::vector<RecordedSpan> spans, std::optional<std::size_t> gemms);

/// Numbers of the iterations that took at most half as long again as the middle one, on as many GPUs as any:
/// not those in which a rank waited for another that started late.
std::vector<std::size_t> steady_iterations(const std::vector<Iteration>& iterations);

}  // namespace overlap
