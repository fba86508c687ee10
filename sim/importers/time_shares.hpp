#pragma once

#include "sim/importers/trace_importer.hpp"

namespace overlap {

/// A part of an iteration's time on one GPU.
struct TimeShare {
    std::string what;  ///< "GEMM", "attention", "other kernels", "exposed all_gather", "host", "idle", ...
    double us = 0;
};

/// Where an iteration goes, on the GPU that takes longest: each moment counts for the first of GEMM, attention, other
/// kernels, communication, copies from or to the host, that runs; where nothing does, for the host until it has
/// enqueued the next kernel, and as idle from then on. The parts add up to the iteration.
std::vector<TimeShare> time_shares(const std::vector<RecordedSpan>& iteration);

}  // namespace overlap
