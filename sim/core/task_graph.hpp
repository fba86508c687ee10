#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "sim/core/errors.hpp"
#include "sim/core/operators.hpp"

namespace overlap {

/// Agent of a transfer: a DMA engine, or a kernel on compute units.
enum class Agent { dma, cu };
/// Which end executes a transfer: the receiver reads (pull) or the sender writes (push).
enum class Direction { pull, push };

inline const std::array<std::string, 2> agent_names{"dma", "cu"};
inline const std::array<std::string, 2> direction_names{"pull", "push"};

/// Commands of a DMA engine.
struct PlainCopy {
    friend bool operator==(const PlainCopy&, const PlainCopy&) = default;
};
/// Reads once and writes to two GPUs: `dst` of the copy and `second`.
struct Broadcast {
    int second;
    friend bool operator==(const Broadcast&, const Broadcast&) = default;
};
/// Exchanges two buffers in place, so that the bytes of the copy go both ways.
struct Swap {
    friend bool operator==(const Swap&, const Swap&) = default;
};
/// One of `batch` copies that an engine is told of at once, and of which it signals the end of the last. They are
/// on one stream and one engine of the GPU.
struct BackToBack {
    std::uint16_t place;  ///< from 0
    std::uint16_t batch;
    friend bool operator==(const BackToBack&, const BackToBack&) = default;
};
using DmaCommand = std::variant<PlainCopy, Broadcast, Swap, BackToBack>;

/// Bytes from one GPU's memory to another's. `run`: length of a contiguous piece; equal to `bytes` for a
/// contiguous copy, a row of the block for a strided (2-D) copy.
struct CopyWork {
    int src = 0;
    int dst = 0;
    Bytes bytes;
    Bytes run;
    Agent agent = Agent::dma;
    Direction direction = Direction::pull;
    int cus = 0;              ///< compute units held by a copy kernel; 0 with DMA
    DmaCommand command = {};  ///< a plain copy unless the agent is `dma`
    /// Queued in advance behind a poll, or done by a running kernel that polls (a part of a fused kernel, or
    /// a persistent one): a write to memory starts it.
    bool prelaunched = false;
    bool stored = false;  ///< the kernel that makes the bytes stores them at `dst` instead of `src`
    bool added = false;   ///< the memory at `dst` adds the bytes to its contents (DeviceSpec::near_memory)
    bool all_pairs =
        false;  ///< while `src` sends to other GPUs of its node, too, and others of them send to `dst`

    const Broadcast* broadcast() const { return std::get_if<Broadcast>(&command); }
    bool is_swap() const { return std::holds_alternative<Swap>(command); }

    friend bool operator==(const CopyWork&, const CopyWork&) = default;
};

/// Calls `move(src, dst)` for every route that the bytes of a copy take.
template <class Move>
void for_each_way(const CopyWork& copy, Move&& move) {
    move(copy.src, copy.dst);
    if (const Broadcast* both = copy.broadcast()) move(copy.src, both->second);
    if (copy.is_swap()) move(copy.dst, copy.src);
}

/// A pack or a scatter inside one GPU: `bytes` are read and written once; `run` as in CopyWork.
struct LocalCopyWork {
    Bytes bytes;
    Bytes run;
    int cus = 0;              ///< thread blocks of a copy kernel; 0: a schedule's own kernel
    bool by_runtime = false;  ///< by the runtime's copy, a kernel on every free unit

    bool is_own_kernel() const { return cus == 0 && !by_runtime; }

    friend bool operator==(const LocalCopyWork&, const LocalCopyWork&) = default;
};

/// Sum of `parts` partial results of `bytes` each into one of `bytes`.
struct ReduceWork {
    Bytes bytes;
    int parts = 2;
    bool by_framework = false;  ///< by an operator of a framework, not by a kernel made for it

    friend bool operator==(const ReduceWork&, const ReduceWork&) = default;
};

/// An element-wise or similar operator that streams memory; `flops`: of matrix units, as of fused attention.
struct MemoryBoundWork {
    Bytes read;
    Bytes written;
    Flops flops = {};
    DType dtype = DType::bf16;
    Seconds time = {};             ///< above 0: how long it ran elsewhere, which it takes here, too
    AttentionCall attention = {};  ///< of fused attention, where its shape is known
    /// `time` is of this very run, and has what ran beside it in it: it takes nothing of the GPU.
    bool in_this_run = false;
    std::optional<Seconds> gap = {};  ///< of such a kernel: before it, instead of a launch

    friend bool operator==(const MemoryBoundWork&, const MemoryBoundWork&) = default;
};

/// One rank's part of a whole collective by a library's kernel (RCCL, NCCL): transfers and reductions in one.
struct CollectiveKernelWork {
    CollectiveKind kind = CollectiveKind::all_gather;
    Bytes operand;  ///< whole operand: gathered by all_gather, sent by each rank in the other collectives
    int cus = 0;    ///< compute units of its kernel; 0: the library's own choice
    RankGroup group = {};
    CollectiveKernel kernel = CollectiveKernel::library;
    ExpertExchange exchange = {};  ///< by DeepEP

    friend bool operator==(const CollectiveKernelWork&, const CollectiveKernelWork&) = default;
};

/// Calls of a GPU's host that enqueue one task (sim/schedules/host.hpp).
struct HostWork {
    Seconds time;

    friend bool operator==(const HostWork&, const HostWork&) = default;
};

using Work = std::variant<GemmShape, CopyWork, LocalCopyWork, ReduceWork, MemoryBoundWork,
                          CollectiveKernelWork, HostWork>;

enum class TaskKind { gemm, copy, local_copy, reduce, memory_bound, collective, host };
inline const std::array<std::string, 7> task_kind_names{"gemm",         "copy",       "local_copy", "reduce",
                                                        "memory_bound", "collective", "host"};

/// In-order queues of one GPU. Transfers to or from peer p are on stream `transfer_stream(p)`.
inline constexpr int host_stream = -1;  ///< the host's calls, one after another
/// Streams that a list or a plan names, beside those below: number 0 … most_side_streams − 1.
inline constexpr int most_side_streams = 64;
constexpr int side_stream(int number) {
    return host_stream - 1 - number;
}
inline constexpr int compute_stream = 0;
inline constexpr int local_stream = 1;
constexpr int transfer_stream(int peer) {
    return 2 + peer;
}
std::string stream_name(int stream);

struct Task {
    Work work;
    int gpu = 0;     ///< GPU that executes it
    int stream = 0;  ///< in-order queue of that GPU; tasks of one stream run in the order they were added
    int shard = -1;  ///< which shard (owner rank) it works on; −1: all
    int chunk = -1;  ///< which chunk of that shard; −1: all
    /// Its stream's priority; among tasks that wait for the same resource the higher number goes first
    int priority = 0;
    int gemm_cus = 0;               ///< compute units that a GEMM's stream may use (a mask); 0: all
    CuMask cu_mask = CuMask::even;  ///< which these are
    /// A GEMM by the schedule's own kernel of `gemm_cus` work-groups, instead of a library's under a mask
    bool persistent = false;
    /// Goes on with the kernel of the task before it on its stream: it has no launch and no host call of its own
    bool continues = false;
    int op = -1;  ///< of a list: the operator that it belongs to; −1: the workload is a pair

    TaskKind kind() const { return static_cast<TaskKind>(work.index()); }
    /// Whether it is a copy and a DMA engine its agent; all other tasks are kernels.
    bool by_dma() const {
        const auto* copy = std::get_if<CopyWork>(&work);
        return copy != nullptr && copy->agent == Agent::dma;
    }
    /// For reports: "gemm s3 c1", "copy 3>0 s3 c1", "copy 3>0+1", "copy 3<>0".
    std::string name() const;
};

using TaskId = std::size_t;

/// The body of `successor` passes the fraction `to` only after `predecessor` has done the fraction `from` of
/// its body. 1 and 0 are an ordinary edge: start after the end. Other values are a progress edge, as between
/// fused or flag-gated kernels: the predecessor sets a flag on the way, and the successor polls it.
struct Edge {
    TaskId predecessor = 0;
    TaskId successor = 0;
    double from = 1;  ///< in (0, 1]
    double to = 0;    ///< in [0, 1)
    /// The predecessor stands for a task like it on another GPU (sim/quotient), whatever its own GPU
    bool from_other_gpu = false;

    bool of_progress() const { return from < 1 || to > 0; }
};

/// Queues of a GPU's hardware, to which its streams are assigned in turn, in the order of their first tasks. The
/// tasks of a queue begin in the order of their numbers.
struct HardwareQueues {
    int count = 0;  ///< 0: a queue for each stream
    bool until_end =
        false;  ///< the next task of a queue waits until this one has ended; else until it has begun
};

/// Most tasks and edges that a graph may have. Without another limit: as many as their numbers have bits for.
struct GraphLimit {
    std::size_t tasks = UINT32_MAX - 1, edges = UINT32_MAX - 1;
};

/// A graph reached its limit while it was built.
class GraphTooLarge : public UserError {
public:
    GraphTooLarge(std::size_t tasks, std::size_t edges);
    std::size_t tasks, edges;  ///< that it would have had at least
};

/// A directed acyclic graph of tasks. In addition to the edges, the tasks of one (gpu, stream) run one after
/// another in the order of their numbers.
class TaskGraph {
public:
    TaskGraph() = default;
    explicit TaskGraph(GraphLimit limit) : limit_(limit) {}
    /// What may still be added.
    GraphLimit left() const { return {limit_.tasks - size(), limit_.edges - edge_count()}; }

    /// From now on a stream runs, of its tasks that wait for no other, the one of the lowest number. Tasks of one
    /// operator (Task::op) keep their order, and so do the hosts' calls.
    void run_by_data() { by_data_ = true; }
    bool runs_by_data() const { return by_data_; }
    void share(HardwareQueues queues) { queues_ = queues; }
    const HardwareQueues& queues() const { return queues_; }
    /// Names of streams other than stream_name's.
    void name_streams(std::map<int, std::string> names) { stream_names_ = std::move(names); }
    const std::map<int, std::string>& stream_names() const { return stream_names_; }
    std::string name_of_stream(int stream) const {
        const auto found = stream_names_.find(stream);
        return found == stream_names_.end() ? stream_name(stream) : found->second;
    }

    /// Reserves memory for this many tasks and edges in total, which the graph is going to have at least. Throws
    /// GraphTooLarge if they exceed its limit, as whatever adds tasks and edges does.
    void reserve(std::size_t tasks, std::size_t edges);
    TaskId add(const Task& task, std::span<const TaskId> after = {});
    TaskId add(const Task& task, std::initializer_list<TaskId> after) {
        return add(task, std::span(after.begin(), after.size()));
    }

    /// The predecessor must have the lower number, so that the graph stays acyclic.
    void add_edge(const Edge& edge);

    /// Task::op of a task.
    void set_operator(TaskId id, int op) { tasks_[id].op = op; }

    std::size_t size() const { return tasks_.size(); }
    const Task& operator[](TaskId id) const { return tasks_[id]; }
    /// Edges are numbered in the order in which they were added.
    std::size_t edge_count() const { return edges_.size(); }
    Edge edge(std::size_t number) const {
        const StoredEdge& edge = edges_[number];
        if (edge.more == none) return {edge.predecessor, edge.successor};
        const More& more = more_[edge.more];
        return {edge.predecessor, edge.successor, more.from, more.to, more.from_other_gpu};
    }
    bool has_progress_edges() const { return has_progress_edges_; }
    /// Calls `visit(edge)` for each edge into a task, in the order in which they were added.
    template <class Visit>
    void for_each_edge_into(TaskId id, Visit&& visit) const {
        for (std::uint32_t number = links_[id].first_in; number != none; number = edges_[number].next_in)
            visit(edge(number));
    }
    /// Streams are numbered 0 … streams() − 1 in the order of their first tasks.
    std::size_t streams() const { return streams_.size(); }
    std::size_t stream_number(TaskId id) const { return stream_numbers_[id]; }
    std::span<const std::uint32_t> stream_numbers() const { return stream_numbers_; }
    int gpu_of_stream(std::size_t number) const { return streams_[number].gpu; }
    /// The task before it on its stream; its own number if it is the first.
    TaskId stream_predecessor(TaskId id) const { return links_[id].stream_predecessor; }
    /// One more than the highest number of a GPU that has tasks.
    int gpus() const { return static_cast<int>(numbers_.size()); }

    /// Longest path over edges and stream order for given durations of tasks; a task progresses evenly.
    Seconds critical_path(std::span<const Seconds> durations) const { return longest_path(durations, true); }
    /// Longest path over edges: streams may run their tasks in any order.
    Seconds data_path(std::span<const Seconds> durations) const { return longest_path(durations, false); }

private:
    static constexpr std::uint32_t none = UINT32_MAX;
    /// Linked lists of the edges into each task, compact for graphs of millions of edges.
    struct StoredEdge {
        std::uint32_t predecessor, successor;
        std::uint32_t more;     ///< none: an ordinary edge
        std::uint32_t next_in;  ///< into the same task
    };
    struct More {
        double from, to;
        bool from_other_gpu;
    };
    struct Links {
        std::uint32_t stream_predecessor;
        std::uint32_t first_in, last_in;  ///< edges into the task
    };
    struct Stream {
        int gpu;
        std::uint32_t last;  ///< task
    };
    Seconds longest_path(std::span<const Seconds> durations, bool in_stream_order) const;
    /// Returns the task before `id` on the stream of `id`; `id` itself if there is none.
    std::uint32_t put_on_stream(TaskId id);

    GraphLimit limit_;
    std::vector<Task> tasks_;
    std::vector<StoredEdge> edges_;
    std::vector<More> more_;
    bool has_progress_edges_ = false;
    bool by_data_ = false;
    HardwareQueues queues_;
    std::map<int, std::string> stream_names_;
    std::vector<Links> links_;                         ///< by task
    std::vector<std::uint32_t> stream_numbers_;        ///< by task
    std::vector<std::vector<std::uint32_t>> numbers_;  ///< by GPU and stream; none where it has no task
    std::unordered_map<std::uint64_t, std::uint32_t> far_numbers_;  ///< of streams beyond these, by both
    std::vector<Stream> streams_;
};

}  // namespace overlap
