#pragma once

#include <functional>
#include <vector>

#include "models/calibration/hip/machine.hpp"

namespace overlap::hip {

using Operation = std::function<void(hipStream_t)>;

/// The operations of one stream of one GPU, in order, from the common release of all GPUs.
struct Lane {
    int gpu = 0;
    std::vector<Operation> operations;
    bool mark_each = true;  ///< an event after every operation; else only after the last
    double delay_us = 0;    ///< start after the release
};

struct LaneTimes {
    double start = 0;          ///< µs from the release of the lane's GPU
    std::vector<double> ends;  ///< of each operation, or of the last
    double end() const { return ends.back(); }
    /// From the end of the previous operation (for the first: the start of the lane) to its own end.
    double duration(std::size_t operation) const;
};

/// Enqueues lane after lane, each behind a kernel that spins on a word in pinned host memory, then sets that word. This
/// keeps host launch time out and starts all GPUs together. The release of a GPU is the start of its first
/// lane. At most a few hundred operations a lane: a full launch queue would wait for the gate for ever.
std::vector<LaneTimes> run_lanes(Machine& machine, const std::vector<Lane>& lanes);

/// The longest of the GPUs' times from release to last end, µs.
double makespan(const std::vector<LaneTimes>& times);

/// Holds streams for operations that lanes can't express; `open` releases the streams.
class Gate {
public:
    Gate();
    /// Holds a stream of the current GPU; it continues `delay_us` after `open`.
    void hold(hipStream_t stream, double delay_us = 0);
    void open();

private:
    int* host_word_ = nullptr;
    int* device_word_ = nullptr;
    int round_ = 0;
};
Gate& gate();

}  // namespace overlap::hip
