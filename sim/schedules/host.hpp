#pragma once

#include <array>
#include <map>
#include <span>
#include <string>

#include "sim/core/fields.hpp"
#include "sim/core/task_graph.hpp"
#include "sim/core/what_if.hpp"

namespace overlap {

inline const std::string default_host = "threads";  ///< of runs: what programs do
inline const std::string recorded_host = "replay";  ///< of measured cases that name none

enum class HostThreads { one_a_gpu, one };
inline const std::array<std::string, 2> host_threads_names{"one_a_gpu", "one"};
/// What the next task of a hardware queue waits for: that the one before it has begun, or that it has ended.
enum class QueueWaits { begin, end };
inline const std::array<std::string, 2> queue_waits_names{"begin", "end"};
enum class HostEvents { timed, untimed };
inline const std::array<std::string, 2> host_events_names{"timed", "untimed"};

/// Who enqueues, and how long a call takes: a file of configs/hosts.
struct Host {
    /// How long the host takes for each kind of call.
    struct Calls {
        Seconds gemm, kernel, copy, collective, event, wait, stream;
        Seconds graph;  ///< above 0: one launch enqueues the whole graph
    };
    /// How much later than the first what begins.
    struct Starts {
        Seconds replay;  ///< steady: from the end of a captured graph's replay to the begin of the next one
        Seconds replay_collective;  ///< in addition, if the graph has a library's collective
        Seconds release;            ///< of a GPU's other streams, after its first
        Seconds
            pause;     ///< steady: from the end of a run to the begin of the next, in which the GPUs are idle
        Seconds skew;  ///< of the last rank; it grows linearly with the rank
    };

    std::string name, description;
    HostThreads threads = HostThreads::one_a_gpu;
    HostEvents events = HostEvents::timed;
    Calls calls;
    Starts starts;
    /// Rate of GEMMs on this program's operands, as a fraction of that on the operands that GEMMs are measured with
    double gemm_speed = 1;
    /// Time that a library GEMM saves, relative to back-to-back launches on a stream, where GEMMs are measured
    Seconds gemm_saved;
    int queue_depth = 0;      ///< 0: no limit
    int hardware_queues = 0;  ///< 0: one for each stream
    QueueWaits queue_waits = QueueWaits::begin;
    /// What a framework's operator takes in addition, by schedule and collective: "async_tp_all_gather"
    std::map<std::string, Seconds> operators = {};
    Json file = Json::object();  ///< with sources and error_pct (evidence_of_host)
    /// Values of the device that change with what enqueues: keys of a run's what-if
    Json device = Json::object();

    static std::span<const Field<Host>> fields();

    /// Whether the calls of some task take time, so that each is a task of its own.
    bool calls_take_time() const;
    /// Whether it is one thread whose calls take no time and that changes nothing on GPUs, as in `replay`.
    bool is_replay() const;

    /// Time of the calls that enqueue `task`: `waits` events of other streams, on another stream than the call before.
    Seconds call(const Task& task, int waits, bool other_stream) const;
    Seconds of_operator(const std::string& schedule, CollectiveKind collective) const;
};

/// Throws UserError like read_config_file.
Host read_host(const ConfigFile& file);

/// JSON schema of configs/hosts/<name>.json, from the table of Host.
Json host_schema();

/// The graph in the order in which hosts that work side by side enqueue it: the k-th tasks of all GPUs before any GPU's
/// next. A DMA engine that serves in the order of enqueueing serves by that order. If calls take time, each task waits
/// for its call, a task of `host_stream`; a call waits for a place in a queue of `queue_depth` tasks. `first`: what
/// each GPU's host does before its first call, beside its part of `starts.skew`.
TaskGraph enqueued(const TaskGraph& graph, const Host& host, Seconds first);

/// Time that the busiest GPU's host takes for `graph`.
Seconds host_time(const TaskGraph& graph);

/// From the end of a replay of `graph` to the begin of the next one.
Seconds replay_gap(const TaskGraph& graph, const Host& host);

}  // namespace overlap
