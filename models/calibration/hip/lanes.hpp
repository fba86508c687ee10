#pragma once

#include <functional>
#include <vector>

#include "models/calibration/hip/machine.hpp"

namespace overlap::hip {

using Operation = std::function<void(hipStream_t)>;

/// What one stream of one GPU does, in order, from the moment that all GPUs are released.
struct Lane {
    int gpu = 0;
    std::vector<Operation> operations;
    bool high_priority = false;
    bool mark_each = true;  ///< an event after every operation; else after the last only
    double delay_us = 0;    ///< starts so long after the release
};

struct LaneTimes {
    double start = 0;          ///< µs from the release of the lane's GPU
    std::vector<double> ends;  ///< of each operation, or of the last
    double end() const { return ends.back(); }
    /// From the end of the one before (the start of the lane for the first) to its own end.
    double duration(std::size_t operation) const;
};

/// In which order the host enqueues: lane after lane; one operation of every lane by turns; or each GPU's
/// lanes by a host thread of its own, lane after lane, all threads at once. DMA engines may serve commands in
/// that order.
enum class Enqueue { lanes, steps, threads };

/// Enqueues every lane behind a kernel that spins on a word in pinned host memory, then sets that word: host
/// launch time is kept out, and all GPUs start together. The release of a GPU is when the first of its lanes
/// is let go. At most a few hundred operations a lane: a full launch queue would wait for the gate for ever.
std::vector<LaneTimes> run_lanes(Machine& machine, const std::vector<Lane>& lanes,
                                 Enqueue order = Enqueue::lanes);

/// The longest of the GPUs' times from release to last end, µs.
double makespan(const std::vector<LaneTimes>& times);

/// Holds streams for operations that lanes can't express; `open` releases them.
class Gate {
public:
    Gate();
    /// On the current GPU; the stream goes on `delay_us` after `open`.
    void hold(hipStream_t stream, double delay_us = 0);
    void open();

private:
    int* host_word_ = nullptr;
    int* device_word_ = nullptr;
    int round_ = 0;
};
Gate& gate();

}  // namespace overlap::hip
