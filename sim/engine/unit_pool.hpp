#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "models/cost_model.hpp"
#include "sim/core/task_graph.hpp"
#include "sim/engine/thread_blocks.hpp"
#include "sim/engine/tile_waves.hpp"

namespace overlap {

/// Units of the resources that tasks claim: DMA engines, compute units. At the end of an instant, `settle`
/// gives free units away: by priority, then to tasks that run and can use more, then to those that wait, in
/// the order of the resource. A task that can't be given its least yet keeps the ones behind it waiting.
///
/// round_robin goes on with the stream after the one served last, by TaskGraph::stream_number.
/// unspecified goes on with the stream served last while that has a task that waits; else it serves the
/// lowest of ranks drawn from the seed and the task's number: every order of streams that wait together is as
/// likely as any other (traces/h200_4/microbench/at_once.jsonl: chains of pushes to three peers run one after
/// another, in all orders). Claims that are served as enqueued wait for their turn whatever the order of the
/// resource.
class UnitPools {
public:
    /// The share of its body that a task has done.
    using Progress = std::function<double(TaskId)>;
    using Clock = std::function<Seconds()>;

    UnitPools(const TaskGraph& graph, std::span<const Cost> costs, const ResourceTable& resources,
              std::uint64_t seed, Progress progress, Clock now);

    /// The task waits from now on. Of one instant, requests count in the order of task numbers.
    void request(TaskId task);
    void release(TaskId task);
    /// Of a task with blocks, released: the units that it had, times how long it had each [unit·s].
    double unit_seconds(TaskId task) const { return places_[task].had; }
    /// From now on the task has use for no more than so many of its units.
    void keep(TaskId task, int units);
    /// Of a task with tiles or blocks that has units: the share of its body at which units are next done with
    /// one.
    double next_step(TaskId task) const;
    bool ends_next_step(TaskId task) const;
    /// It has come there: units without a tile or block are free. False: it can't go on until more come.
    bool go_on(TaskId task);
    /// How much longer its body takes at the top rate, with the units that it has now (Cost::crowding).
    double stretch(TaskId task) const;
    /// Whether the task had to wait for its units, and was given them after one of another stream.
    bool switched(TaskId task) const { return places_[task].switched; }
    /// Appends to `served` the tasks that have been given their units, to `resumed` those that waited for
    /// more or are to go on at another rate with more.
    void settle(std::vector<TaskId>& served, std::vector<TaskId>& resumed);

private:
    struct Place {
        int priority = 0;
        std::uint32_t stream = 0;
        bool switched = false;
        double had = 0;  ///< unit·s
    };
    struct Waiter {
        std::uint32_t task;
        int priority;
        std::uint64_t rank;   ///< the lower first; round_robin: number of the stream
        std::uint64_t since;  ///< Pool::settled when it asked
    };
    struct Holder {
        std::uint32_t task;
        int priority;
        int given;
        int most;
        TileWaves waves = {};
        ThreadBlocks blocks = {};
        Seconds since = {};  ///< of blocks: when `given` last changed
    };
    struct Pool {
        int free = 0;
        QueueOrder order = QueueOrder::fifo;
        std::uint64_t last_stream = UINT64_MAX;
        std::uint64_t arrivals = 0;
        std::uint64_t settled = 0;  ///< how often
        bool touched = false;
        std::vector<Waiter> waiting;
        std::vector<std::uint32_t> enqueued;  ///< tasks that are served in this order
        std::size_t next_enqueued = 0;
        std::vector<Holder> holders;  ///< in the order they were served
        Bytes cache_left;             ///< by the last task with tiles
        bool tiles = false;           ///< some holder has any
    };

    Pool& pool_of(TaskId task);
    const Holder& holder_of(TaskId task) const;
    static std::vector<Holder>::iterator holder_of(Pool& pool, TaskId task);
    void settle(Pool& pool, std::vector<TaskId>& served, std::vector<TaskId>& resumed);
    void give(Pool& pool, const Waiter& waiter, int within_reach);
    /// How many units so many blocks get where they had to wait.
    int crowded_units(TaskId task, int blocks) const;
    /// Puts blocks of a holder on so many units.
    void place_blocks(const Pool& pool, Holder& holder, int units, bool had_to_wait);
    /// Adds up the unit·s of a holder with blocks, before its units change.
    void count(Holder& holder);
    bool is_in_turn(const Pool& pool, const Waiter& waiter) const;
    std::size_t next_waiter(const Pool& pool) const;
    void grow_holders(Pool& pool, int at_least, std::vector<TaskId>& resumed);
    void join(Pool& pool, Holder& holder, std::vector<TaskId>& resumed);
    void join_blocks(Pool& pool, Holder& holder, std::vector<TaskId>& resumed);
    void update_pace(Pool& pool, std::vector<TaskId>& resumed);
    int reclaimable(const Pool& pool, int priority) const;
    void reclaim(Pool& pool, int priority, int units);

    std::span<const Cost> costs_;
    std::uint64_t seed_;
    Progress progress_;
    Clock now_;
    std::vector<Place> places_;  ///< by task; empty where nothing is claimed
    std::vector<std::uint32_t> pool_by_resource_;
    std::vector<Pool> pools_;
    std::vector<std::uint32_t> touched_;
    std::vector<TaskId> requests_;  ///< of this instant
};

}  // namespace overlap
