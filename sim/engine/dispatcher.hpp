#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "models/costs.hpp"
#include "sim/core/task_graph.hpp"
#include "sim/engine/unit_pool.hpp"

namespace overlap {

/// What lies between the end of a task and the start of a successor. Each kind has its own latency.
enum class Handoff : std::uint8_t {
    same_stream,   ///< none
    other_stream,  ///< Handoffs::other_stream
    other_gpu,     ///< Handoffs::other_gpu
    flag,          ///< Handoffs::flag: a progress edge
};
inline constexpr std::array all_handoffs{Handoff::same_stream, Handoff::other_stream, Handoff::other_gpu,
                                         Handoff::flag};
inline Seconds latency(const Cost& cost, Handoff kind) {
    const Handoffs& handoffs = cost.handoffs;
    const std::array latencies{Seconds(), handoffs.other_stream, handoffs.other_gpu, handoffs.flag};
    return latencies[static_cast<std::size_t>(kind)];
}

/// Decides which task may do what next: dependencies, in-order streams, claims on units. The dispatcher knows
/// order, not time: TaskLifecycle reports what has happened and begins what is returned, which is valid until
/// the next call. A body runs from stop to stop. A stop is a fraction of the body at which a progress edge
/// leaves or arrives, or at which the claim gets smaller.
class Dispatcher {
public:
    /// A time of the engine: later dates are larger numbers.
    using Date = std::int64_t;
    struct Dated {
        TaskId task;
        Date date;
    };
    /// What begins now.
    struct Next {
        std::vector<Dated> released;  ///< tasks of which released() is to be called at a later date
        std::vector<TaskId> launch;
        std::vector<TaskId> set_up;
        /// Bodies that continue from their stop, and running bodies whose next_stop() or stretch() is new.
        /// A body that has not begun reads both when it begins.
        std::vector<TaskId> resume;

        bool empty() const { return released.empty() && launch.empty() && set_up.empty() && resume.empty(); }
    };

    Dispatcher(const TaskGraph& graph, CostView costs, const ResourceTable& resources);

    /// Time is zero: what begins first. `seed` decides the orders that the machine leaves unspecified. `progress`
    /// returns the fraction of a body that is done, `now` the time; both are called only for costs with tiles or
    /// thread blocks.
    const Next& begin(std::uint64_t seed = 0, UnitPools::Progress progress = {}, UnitPools::Clock now = {});
    /// Duration of the launch of `task`, which has just begun.
    Seconds launch_time(TaskId task) const {
        const Launch& launch = costs_[task].launch;
        return states_[task].waited_to_launch ? launch.queued : launch.time;
    }
    /// The launch of `task` is over.
    const Next& launched(TaskId task);
    /// Fraction of the task's body at which the task next stops. 1.0 is the end of the body. A body of tiles
    /// ends above 1.0 where compute units came late.
    double next_stop(TaskId task) const;
    /// Whether the next stop is the end of the body.
    bool ends_next(TaskId task) const;
    /// Factor by which the body takes longer up to its next stop, because it has fewer units than it could use.
    double stretch(TaskId task) const {
        return claimed<Blocks>(costs_[task]) != nullptr ? pools_.stretch(task) : 1.0;
    }
    /// Whether the next stop has a number: a progress edge leaves or arrives there, or the claim gets smaller.
    bool is_numbered(TaskId task) const;
    /// Number of the stop that `task` has reached, unique among all tasks.
    std::size_t stop_number(TaskId task) const { return states_[task].stop; }
    /// The body of `task` has reached next_stop(), which is not its end. It continues when `resume` lists it.
    const Next& reached(TaskId task);
    /// The body of `task` is over. Releases what it claimed, and its stream unless `keeps_stream`.
    const Next& body_done(TaskId task, bool keeps_stream = false);
    /// Releases the stream that `task` held past the end of its body (see `keeps_stream`).
    const Next& stream_left(TaskId task);
    /// Whether a successor waits for this kind of hand-over. If not, nobody need report it.
    bool hands_over(TaskId task, Handoff kind) const;
    bool flags(std::size_t stop) const { return stops_[stop].flags; }
    /// `task` ends, and the latency of `kind` is over at the date `at`, which may be later than `now` unless tasks
    /// wait for the hand-over in the middle of their bodies.
    const Next& handed_over(TaskId task, Handoff kind, Date at = 0, Date now = 0);
    /// The latency of a flag set at a stop of `task` is over.
    const Next& flagged(TaskId task, std::size_t stop, Date now = 0);
    /// The date of the last hand-over to `task` has come.
    const Next& released(TaskId task);
    /// Compute units times the time that the task had them [unit·s]. Only for ended tasks whose thread blocks
    /// are placed one by one.
    double unit_seconds(TaskId task) const {
        return states_[task].copied.goes_in_steps && claimed<Blocks>(costs_[task]) != nullptr
                   ? pools_.unit_seconds(task)
                   : 0.0;
    }
    /// Duration of the setup of a task that has been given what it claims.
    Seconds setup(TaskId task) const {
        const Cost& cost = costs_[task];
        const bool more = cost.switch_over > Seconds() && cost.claim && pools_.switched(task);
        return more ? cost.setup + cost.switch_over : cost.setup;
    }
    /// How long `task`, whose setup is over and which has its units, waits for other ranks to get theirs.
    Seconds late_ranks(TaskId task) const {
        return states_[task].copied.claims ? pools_.late_ranks(task) : Seconds();
    }
    /// Everything at this instant has been reported, but for launches that take no time. Gives free streams to tasks
    /// that may start (TaskGraph::run_by_data), and begins queued launches: a GPU launches what became ready at one
    /// instant in the order of its tasks' numbers, whatever let them begin.
    const Next& begin_launches();
    bool launches_wait() const { return !launch_.waiting_now.empty() || !open_.to_serve.empty(); }
    /// Everything at this instant has been reported. Gives free units to the tasks that wait for them.
    const Next& settle();
    /// Whether units were asked for or came free since settle().
    bool claims_change() const { return !pools_.settled(); }

private:
    static constexpr std::uint32_t none = UINT32_MAX;
    /// Copied from a task's cost, because reading costs is slow: each takes many more bytes.
    struct OfCost {
        bool launches_ahead : 1 = false;
        bool queues_to_launch : 1 = false;
        bool claims : 1 = false;
        bool goes_in_steps : 1 = false;  ///< its tiles or thread blocks end at different times
    };
    struct State {
        Date released = 0;            ///< date of the last known hand-over to it
        std::uint32_t waits_for = 0;  ///< predecessors that still block its start
        std::uint32_t stop = 0;       ///< number of its next stop
        std::uint32_t last_stop = 0;  ///< number of its last stop, plus 1
        bool has_stream : 1 = false;  ///< first on its stream
        bool launch_begun : 1 = false;
        bool waited_to_launch : 1 = false;
        bool launch_over : 1 = false;
        bool stalled : 1 = false;  ///< waits at `stop`
        OfCost copied;
        bool by_data : 1 = false;    ///< its stream goes to whatever may start
        bool after_own : 1 = false;  ///< an earlier task of its operator has not left its stream
        bool has_queue : 1 = true;   ///< first in its hardware queue
    };
    struct Stop {
        double at = 0;
        std::uint32_t waits_for = 0;  ///< predecessors that still block the body here
        bool flags = false;           ///< successors wait for this stop
    };
    /// 8 bytes: graphs of thousands of GPUs have millions of them.
    struct Successor {
        std::uint32_t task;
        std::uint32_t how;  ///< a Handoff; from Handoff::flag on, plus an index into `flags_`
        Handoff kind() const { return static_cast<Handoff>(std::min(how, first_flag)); }
    };
    static constexpr auto first_flag = static_cast<std::uint32_t>(Handoff::flag);
    struct Flag {
        std::uint32_t stop;  ///< stop of the successor that waits; none: its start
        std::uint32_t from;  ///< stop of the predecessor that is waited for; none: its end
    };

    /// Launches one task of a GPU at a time (Launch::queued); the others wait.
    struct Launcher {
        bool busy = false;
        std::size_t next = 0;  ///< index into `waiting`
        std::vector<std::uint32_t> waiting;
    };

    /// A stream that runs its tasks by data.
    struct OpenStream {
        bool busy = false;
        std::vector<std::uint32_t> ready;  ///< a heap, the lowest number first
    };
    /// Streams that run by data; empty without such streams.
    struct ByData {
        std::vector<OpenStream> streams;
        std::vector<std::uint32_t> stream_of;  ///< by task
        std::vector<std::uint32_t>
            next_of_operator;  ///< by task: the next on its stream, or itself if it is the last
        std::vector<std::uint32_t> to_serve;  ///< streams at this instant
    };
    /// Hardware queues that streams share.
    struct Queues {
        std::vector<std::uint32_t> next;  ///< by task: the next in its queue, or itself; empty without queues
        bool until_end = false;
    };
    /// Empty where no launch waits for another.
    struct Launches {
        std::vector<Launcher> launchers;         ///< by GPU
        std::vector<std::uint32_t> gpus;         ///< by task
        std::vector<std::uint32_t> waiting_now;  ///< tasks at this instant
    };

    void add_order_by_data(const TaskGraph& graph);
    void add_queues(const TaskGraph& graph);
    void ask_for_stream(TaskId task);
    void serve_streams();
    /// The next task of the hardware queue may begin.
    void leave_queue(TaskId task);
    void begin_launch(TaskId task);
    void take_launcher(TaskId task);
    void serve_launchers();
    void add_stops(const TaskGraph& graph);
    void add_successors(const TaskGraph& graph);
    std::uint32_t stop_at(TaskId task, double share) const;
    void clear();
    void release(const Successor& successor, Date at, Date now);
    void advance(TaskId task);
    Flag flag(const Successor& successor) const {
        return successor.how < first_flag ? Flag{none, none} : flags_[successor.how - first_flag];
    }
    /// Who waits for a stop of the task; with `none`, for its end.
    std::span<const Successor> successors(TaskId task, std::size_t stop) const;

    CostView costs_;
    std::vector<State> states_;
    std::vector<Stop> stops_;                     ///< sorted by task
    std::vector<Successor> successors_;           ///< sorted by predecessor, then by its stop
    std::vector<Flag> flags_;                     ///< of progress edges
    std::vector<std::uint32_t> first_successor_;  ///< by task, and one element more
    std::vector<std::uint8_t> hands_over_;        ///< by task: one bit per Handoff
    std::vector<std::uint32_t> next_in_stream_;   ///< by task; its own number for the last of a stream
    ByData open_;
    Queues queues_;
    Launches launch_;
    UnitPools pools_;
    Next next_;
};

}  // namespace overlap
