// Releases all GPUs together and times each stream by events.

#include "models/calibration/hip/lanes.hpp"

#include <algorithm>
#include <map>

namespace overlap::hip {
namespace {

/// The gate includes the delay: a delay kernel launched later might find no free unit beside a
/// GEMM and delay too long.
__global__ void spin_until(const int* word, int round, long long delay) {
    while (load_system(word) < round) {
    }
    const long long released = nanoseconds();
    while (delay && nanoseconds() - released < delay) {
    }
}

double microseconds_between(hipEvent_t from, hipEvent_t to) {
    float milliseconds = 0;
    check(hipEventElapsedTime(&milliseconds, from, to));
    return milliseconds * 1e3;
}

/// A lane's stream and the events on it.
struct Marked {
    const Lane* lane;
    hipStream_t stream;
    hipEvent_t start;
    std::vector<hipEvent_t> ends;  ///< one for each operation, or only the last

    void begin() const {
        check(hipSetDevice(lane->gpu));
        gate().hold(stream, lane->delay_us);
        check(hipEventRecord(start, stream));
    }
    void enqueue(std::size_t operation) const {
        check(hipSetDevice(lane->gpu));
        lane->operations[operation](stream);
        if (lane->mark_each) check(hipEventRecord(ends[operation], stream));
        if (!lane->mark_each && operation + 1 == lane->operations.size())
            check(hipEventRecord(ends[0], stream));
    }
    void enqueue_all() const {
        for (std::size_t operation = 0; operation < lane->operations.size(); ++operation) enqueue(operation);
    }
};

std::vector<Marked> mark(Machine& machine, const std::vector<Lane>& lanes) {
    std::vector<Marked> marked;
    std::map<int, std::size_t> next_event;
    std::map<int, int> next_stream;
    for (const Lane& lane : lanes) {
        const auto event = [&] { return machine.event(lane.gpu, next_event[lane.gpu]++); };
        marked.push_back({&lane, machine.stream(lane.gpu, next_stream[lane.gpu]++), event(), {}});
        for (std::size_t i = 0; i < (lane.mark_each ? lane.operations.size() : 1); ++i)
            marked.back().ends.push_back(event());
    }
    return marked;
}

}  // namespace

Gate::Gate() {
    void* memory = nullptr;
    check(hipHostMalloc(&memory, sizeof(int), hipHostMallocMapped | hipHostMallocPortable));
    host_word_ = static_cast<int*>(memory);
    device_word_ = host_word_;  // one address on host and GPUs: unified addressing, both platforms
    *host_word_ = 0;
}

void Gate::hold(hipStream_t stream, double delay_us) {
    spin_until<<<1, 1, 0, stream>>>(device_word_, round_ + 1, static_cast<long long>(delay_us * 1e3));
    check_launch();
}

void Gate::open() {
    __atomic_store_n(host_word_, ++round_, __ATOMIC_RELEASE);
}

Gate& gate() {
    static Gate only;
    return only;
}

double LaneTimes::duration(std::size_t operation) const {
    return ends[operation] - (operation == 0 ? start : ends[operation - 1]);
}

std::vector<LaneTimes> run_lanes(Machine& machine, const std::vector<Lane>& lanes) {
    const std::vector<Marked> events = mark(machine, lanes);
    for (const Marked& lane : events) lane.begin();
    for (const Marked& lane : events) lane.enqueue_all();
    gate().open();
    machine.synchronize();

    // Times on one GPU are relative to one event on that GPU, then shifted to
    // the first lane that was released.
    std::map<int, hipEvent_t> origin;
    std::map<int, double> release;
    std::vector<LaneTimes> times(lanes.size());
    for (std::size_t i = 0; i < lanes.size(); ++i) {
        const hipEvent_t zero = origin.try_emplace(lanes[i].gpu, events[i].start).first->second;
        times[i].start = microseconds_between(zero, events[i].start);
        for (const hipEvent_t end : events[i].ends) times[i].ends.push_back(microseconds_between(zero, end));
        double& first = release.try_emplace(lanes[i].gpu, times[i].start).first->second;
        first = std::min(first, times[i].start);
    }
    for (std::size_t i = 0; i < lanes.size(); ++i) {
        times[i].start -= release[lanes[i].gpu];
        for (double& end : times[i].ends) end -= release[lanes[i].gpu];
    }
    return times;
}

double makespan(const std::vector<LaneTimes>& times) {
    double latest = 0;
    for (const LaneTimes& lane : times) latest = std::max(latest, lane.end());
    return latest;
}

}  // namespace overlap::hip
