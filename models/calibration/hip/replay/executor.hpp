#pragma once

#include <map>
#include <memory>
#include <tuple>

#include "models/calibration/hip/lanes.hpp"
#include "models/calibration/hip/replay/plan.hpp"

namespace overlap::hip {

std::size_t bytes_of(const PlanBuffer& buffer);

/// A plan with memory for its buffers.
struct PlacedPlan {
    const Plan* plan = nullptr;
    std::vector<void*> memory;  ///< by buffer
};

/// Launches a kernel on each stream that a plan may use: on those for GEMMs, for local kernels and for copies, then on
/// those of high priority. If a GEMM and a copy become ready together, the order of these launches decides which of the
/// two begins first, for as long as the process lives (traces/h200_2/notes.md, "stream_order").
void open_streams(Machine& machine);

/// Library GEMMs by shape, kept from plan to plan; one workspace a GPU.
class GemmPlans {
public:
    /// Makes it where it is new. `gpu` becomes the current one.
    Gemm& get(int gpu, const GemmShape& shape);

private:
    using Key = std::tuple<int, std::int64_t, std::int64_t, std::int64_t, bool, int, std::int64_t,
                           std::int64_t, std::int64_t>;
    std::map<Key, std::unique_ptr<Gemm>> gemms_;
    std::map<int, void*> workspaces_;
};

/// Times of one task, µs from the release of its GPU.
struct Span {
    double start = 0, end = 0;
};

struct Execution {
    double makespan = 0;              ///< µs from a GPU's release to its last end, largest over the GPUs
    std::vector<double> stream_ends;  ///< by stream, µs from the release of its GPU
    std::vector<Span> spans;          ///< by task; empty unless requested
};

/// Events with times: of streams' ends alone; after each task, which then begins with the end of the task before it on its
/// stream; or before and after each task.
enum class Times { none, ends, around };

/// Executes a plan repeatedly. The host enqueues its tasks in order behind a closed gate, each on its stream,
/// after the events of the tasks on other streams that it needs; then all GPUs are released together. One event
/// of each GPU releases all its streams: an event with a time on each of them would let one begin 3 us after
/// the other (`latency what=streams_apart`). A stream whose first task is a wait has a gate of its own, which includes the
/// wait: a kernel that waits might find no free unit beside a GEMM, and begin late.
class Executor {
public:
    Executor(Machine& machine, GemmPlans& gemms, const PlacedPlan& placed);
    Execution run(Times times = Times::none);
    /// Runs without gate, waits and times: libraries load a kernel at its first launch and then wait for the
    /// GPU, which would block for ever behind a closed gate.
    void run_first();

private:
    struct Step {
        std::size_t stream;
        std::vector<std::size_t> waits;  ///< tasks whose events it waits for
        Operation operation;
    };
    Operation operation(const PlanTask& task, GemmPlans& gemms) const;
    void enqueue(bool gated, Times times);

    Machine& machine_;
    const Plan& plan_;
    const std::vector<void*>& memory_;
    std::vector<Step> steps_;
    std::vector<hipStream_t> streams_;
    std::vector<bool> begins_late_;                          ///< by stream: its first task is a wait
    std::map<int, hipEvent_t> releases_;                     ///< by GPU: when its streams were let go
    std::vector<hipEvent_t> ends_;                           ///< by stream
    std::vector<hipEvent_t> marks_;                          ///< by task; null if no task waits for it
    std::vector<std::pair<hipEvent_t, hipEvent_t>> around_;  ///< by task
};

}  // namespace overlap::hip
