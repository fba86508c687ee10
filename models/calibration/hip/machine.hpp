#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "models/calibration/hip/gpu.hpp"

namespace overlap::hip {

/// No GPU, or fewer than the case needs: the user's matter, exit 2.
struct NoGpu : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// The GPUs, each with streams, events and one block of memory that cases take from. Allocating memory and
/// creating streams stop the device for up to milliseconds, so both are done once.
class Machine {
public:
    /// Throws NoGpu if there is no GPU.
    explicit Machine(std::size_t arena_bytes);

    int gpus() const { return static_cast<int>(devices_.size()); }
    int compute_units(int gpu) const { return devices_[gpu].compute_units; }
    bool peers() const { return peers_; }  ///< every GPU can access every other GPU's memory

    /// Memory until the next `reset`, aligned to 4 KiB, with contents of earlier cases.
    void* take(int gpu, std::size_t bytes);
    void reset();

    hipStream_t stream(int gpu, int index, bool high_priority = false);
    hipEvent_t event(int gpu, std::size_t index);
    /// An event that only orders streams and records no time.
    hipEvent_t mark(int gpu, std::size_t index);
    /// Zeroed words that a kernel of another GPU may set.
    int* flags(int gpu);
    void synchronize();

private:
    struct Device {
        int compute_units = 0;
        char* arena = nullptr;
        std::size_t used = 0;
        int* flags = nullptr;
        int highest_priority = 0;
        std::vector<hipStream_t> streams[2];
        std::vector<hipEvent_t> events, untimed_events;
    };
    void open(int gpu);

    std::vector<Device> devices_;
    std::size_t arena_bytes_;
    bool peers_ = true;
};

}  // namespace overlap::hip
