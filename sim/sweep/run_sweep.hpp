#pragma once

#include <functional>

#include "sim/sweep/sweep_folder.hpp"
#include "sim/sweep/workers.hpp"

namespace overlap {

/// Asked before every block and told after it; both by one thread at a time.
struct SweepObserver {
    std::function<bool()> stopped;
    std::function<void(const SweepFolder&)> written;
};

/// Runs what `folder` lacks of `space` and writes it in point order, so the files are the same bytes whatever
/// the workers. Takes memory for some blocks a worker, whatever the size of the space. Ends early, resumable,
/// once `stopped`; throws UserError, resumable, where a file can't be written.
void run_sweep(const DesignSpace& space, SweepFolder& folder, Workers& workers,
               const SweepObserver& observer);

}  // namespace overlap
