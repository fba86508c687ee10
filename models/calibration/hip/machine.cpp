// Memory, streams and events of the GPUs.

#include "models/calibration/hip/machine.hpp"

namespace overlap::hip {
namespace {

hipEvent_t event_of(std::vector<hipEvent_t>& events, int gpu, std::size_t index, unsigned flags) {
    while (events.size() <= index) {
        check(hipSetDevice(gpu));
        hipEvent_t event;
        check(hipEventCreateWithFlags(&event, flags));
        events.push_back(event);
    }
    return events[index];
}

}  // namespace

Machine::Machine(std::size_t arena_bytes) : arena_bytes_(arena_bytes) {
    int count = 0;
    const hipError_t status = hipGetDeviceCount(&count);
    if (status != hipSuccess) throw NoGpu(std::string("no GPU: ") + hipGetErrorString(status));
    if (count == 0) throw NoGpu("no GPU: the driver lists none");
    devices_.resize(count);
    // Peers first: memory allocated later is then mapped for them at once.
    for (int gpu = 0; gpu < count; ++gpu) {
        check(hipSetDevice(gpu));
        for (int peer = 0; peer < count; ++peer) {
            int reachable = 0;
            if (peer != gpu) check(hipDeviceCanAccessPeer(&reachable, gpu, peer));
            if (reachable) check(hipDeviceEnablePeerAccess(peer, 0));
            if (peer != gpu && !reachable) peers_ = false;
        }
    }
    for (int gpu = 0; gpu < count; ++gpu) open(gpu);
}

void Machine::open(int gpu) {
    Device& device = devices_[gpu];
    check(hipSetDevice(gpu));
    check(hipDeviceGetAttribute(&device.compute_units, hipDeviceAttributeMultiprocessorCount, gpu));
    void* memory = nullptr;
    check(hipMalloc(&memory, arena_bytes_));
    device.arena = static_cast<char*>(memory);
    check(malloc_flag(&memory, 4096));
    device.flags = static_cast<int*>(memory);
    int lowest = 0;
    check(hipDeviceGetStreamPriorityRange(&lowest, &device.highest_priority));
}

void* Machine::take(int gpu, std::size_t bytes) {
    constexpr std::size_t alignment = 4096;
    Device& device = devices_[gpu];
    char* result = device.arena + device.used;
    device.used += (bytes + alignment - 1) / alignment * alignment;
    if (device.used > arena_bytes_)
        throw std::runtime_error("the case needs more than the " + std::to_string(arena_bytes_ >> 30) +
                                 " GiB a GPU of --arena-GiB");
    return result;
}

void Machine::reset() {
    for (Device& device : devices_) device.used = 0;
}

hipStream_t Machine::stream(int gpu, int index, bool high_priority) {
    auto& streams = devices_[gpu].streams[high_priority];
    while (static_cast<int>(streams.size()) <= index) {
        check(hipSetDevice(gpu));
        hipStream_t stream;
        check(hipStreamCreateWithPriority(&stream, hipStreamNonBlocking,
                                          high_priority ? devices_[gpu].highest_priority : 0));
        streams.push_back(stream);
    }
    return streams[index];
}

hipEvent_t Machine::event(int gpu, std::size_t index) {
    return event_of(devices_[gpu].events, gpu, index, hipEventDefault);
}

hipEvent_t Machine::mark(int gpu, std::size_t index) {
    return event_of(devices_[gpu].untimed_events, gpu, index, hipEventDisableTiming);
}

int* Machine::flags(int gpu) {
    check(hipSetDevice(gpu));
    check(hipMemset(devices_[gpu].flags, 0, 4096));
    check(hipDeviceSynchronize());
    return devices_[gpu].flags;
}

void Machine::synchronize() {
    for (int gpu = 0; gpu < gpus(); ++gpu) {
        check(hipSetDevice(gpu));
        check(hipDeviceSynchronize());
    }
}

}  // namespace overlap::hip
