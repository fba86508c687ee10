#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "models/costs.hpp"
#include "sim/core/task_graph.hpp"
#include "sim/engine/thread_blocks.hpp"
#include "sim/engine/tile_waves.hpp"
#include "sim/topology/device_dma.hpp"

namespace overlap {

/// Units of the resources that tasks claim: DMA engines, compute units. At the end of an instant, `settle`
/// hands out free units: by priority, then to running tasks that can use more, then to waiting tasks in the
/// order of the resource (QueueOrder). A waiting task for which fewer units are free than Claim::least blocks
/// the tasks behind it.
///
/// round_robin serves next the stream after the last served one, by TaskGraph::stream_number.
/// unspecified serves the last served stream as long as a task of it waits. Otherwise it serves the lowest of
/// ranks drawn from the seed and the task number: all orders of streams that wait together are equally likely
/// (traces/h200_4/microbench/at_once.jsonl: chains of pushes to three peers run one after another, in all
/// orders). Claims with `as_enqueued` wait for their turn in every order; where streams run by data (TaskGraph) the host
/// enqueues nothing before it can start, and such claims are served as they come.
class UnitPools {
public:
    /// Fraction of its body that a task has done.
    using Progress = std::function<double(TaskId)>;
    using Clock = std::function<Seconds()>;

    UnitPools(const TaskGraph& graph, CostView costs, const ResourceTable& resources);

    /// Called once, before all others.
    void begin(std::uint64_t seed, Progress progress, Clock now);

    /// The task waits from now on. Requests of one instant are served in the order of task numbers.
    void request(TaskId task);
    void release(TaskId task);
    /// Units times the time that a task with thread blocks had them [unit·s]; after its release.
    double unit_seconds(TaskId task) const { return places_[task].had; }
    /// From now on the task keeps at most `units`; the others are free.
    void keep(TaskId task, int units);
    /// Fraction of the body at which units next finish a tile or thread block. Only for tasks with tiles or
    /// thread blocks that have units.
    double next_step(TaskId task) const;
    bool ends_next_step(TaskId task) const;
    /// The body has reached next_step(): frees units without further tiles or thread blocks. False: no units
    /// are left, so the body waits until it is given more.
    bool go_on(TaskId task);
    /// Factor by which the body takes longer with the units that its thread blocks have now.
    double stretch(TaskId task) const;
    /// Whether the task waited for its units and got them after a task of another stream.
    bool switched(TaskId task) const { return places_[task].switched; }
    /// How long a task that has its units waits for ranks that get theirs later (Claim::yields_after).
    Seconds late_ranks(TaskId task) const;
    /// Whether nothing has been requested or released since settle().
    bool settled() const { return requests_.empty() && touched_.empty(); }
    /// Appends to `served` the tasks that have been given their units, to `resumed` the running tasks that
    /// continue, or continue at another rate, because units came.
    void settle(std::vector<TaskId>& served, std::vector<TaskId>& resumed);

private:
    struct Place {
        int priority = 0;
        std::uint32_t stream = 0, pool = 0;
        bool switched = false;
        bool as_enqueued = false;
        double had = 0;          ///< unit·s
        std::uint64_t draw = 0;  ///< what its rank is drawn from: its number, or its place in its node
    };
    struct Waiter {
        std::uint32_t task;
        std::uint32_t stream;
        int priority;
        bool as_enqueued;
        std::uint64_t rank;   ///< lowest first; round_robin: number of the stream
        std::uint64_t since;  ///< Pool::settled at the time of the request
    };
    struct Holder {
        std::uint32_t task;
        int priority;
        int given;
        int most;
        TileWaves waves = {};
        ThreadBlocks blocks = {};
        /// How many units these thread blocks added to single_units() when they started; they take them from it if
        /// negative
        int single = 0;
        Seconds since = {};  ///< thread blocks: when `given` last changed
    };
    struct Pool {
        int units = 0, free = 0;
        QueueOrder order = QueueOrder::fifo;
        std::uint64_t last_stream = UINT64_MAX;
        std::uint64_t arrivals = 0;
        std::uint64_t settled = 0;  ///< number of calls of settle() so far
        bool touched = false;
        /// Every claim is of one unit, to the end of its body: nobody grows, yields or waits for late ranks, and
        /// `holders` is not filled
        bool one_each = true;
        std::vector<Waiter> waiting;
        std::vector<std::uint32_t> enqueued;  ///< tasks with Claim::as_enqueued, in their order
        std::size_t next_enqueued = 0;
        std::vector<Holder> holders;  ///< in the order in which they were served
        Bytes cache_left;             ///< Tiles::cache_left of the last task with tiles
        bool tiles = false;           ///< some holder has tiles
        bool sum = false;             ///< some holder is a sum
    };

    Pool& pool_of(TaskId task);
    const Pool& pool_of(TaskId task) const;
    const Holder& holder_of(TaskId task) const;
    template <class AnyPool>
    static auto holder_of(AnyPool& pool, TaskId task);
    void settle(Pool& pool, std::vector<TaskId>& served, std::vector<TaskId>& resumed);
    void give(Pool& pool, const Waiter& waiter, int within_reach);
    /// True if a GEMM in clusters, of at least this priority, waits for pairs of units. Thread blocks are placed in
    /// order, so kernels that come later get no units meanwhile, single ones neither (models/calibration/notes.md,
    /// "2026-11-27").
    bool lacks_pairs(const Pool& pool, int priority) const;
    /// Free units whose partner in a pair is held.
    static int single_units(const Pool& pool);
    /// How many units single_units() gains when `blocks` take `given` free units.
    static int singled_by(const Pool& pool, const Blocks& blocks, int given);
    /// Free units that are no use to a task with `tiles`; 0 for one without (null).
    static int lost_to_clusters(const Pool& pool, const Tiles* tiles);
    /// `waiter` has been given its units.
    void leave_line(Pool& pool, const Waiter& waiter);
    /// Places waiting thread blocks of `holder` on `units` compute units.
    void place_blocks(const Pool& pool, Holder& holder, int units, bool had_to_wait);
    /// Adds the unit·s of `holder` since its last change; called before its units change.
    void count(Holder& holder);
    /// Gives `units` free units to `holder`; takes them from it if negative.
    void move_units(Pool& pool, Holder& holder, int units);
    bool is_in_turn(const Pool& pool, const Waiter& waiter) const;
    std::size_t next_waiter(const Pool& pool) const;
    void grow_holders(Pool& pool, int at_least, std::vector<TaskId>& resumed);
    void update_pace(Pool& pool, std::vector<TaskId>& resumed);
    int reclaimable(const Pool& pool, int priority) const;
    void reclaim(Pool& pool, int priority, int units);

    CostView costs_;
    bool by_data_ = false;
    std::uint64_t seed_ = 0;
    Progress progress_;
    Clock now_;
    std::vector<Place> places_;  ///< by task; empty where nothing is claimed
    std::vector<Pool> pools_;
    std::vector<std::uint32_t> touched_;
    std::vector<TaskId> requests_;  ///< requests of this instant
};

}  // namespace overlap
