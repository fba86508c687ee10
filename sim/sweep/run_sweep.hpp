#pragma once

#include <functional>

#include "sim/sweep/sweep_folder.hpp"
#include "sim/sweep/workers.hpp"

namespace overlap {

/// Called before and after every block, by one thread at a time.
struct SweepObserver {
    std::function<bool()> stopped;
    std::function<void(const SweepFolder&)> written;
};

/// Runs the points of `space` that `folder` lacks, and writes them in point order, so the files' bytes do not
/// depend on the workers. Memory: some blocks a worker, whatever the size of the space. Stops early,
/// resumable, when `stopped`; throws UserError, resumable, if a file can't be written.
void run_sweep(const DesignSpace& space, SweepFolder& folder, Workers& workers,
               const SweepObserver& observer);

}  // namespace overlap
