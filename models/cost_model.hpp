#pragma once

#include <boost/container/small_vector.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/calibration.hpp"
#include "models/resources.hpp"
#include "sim/core/task_graph.hpp"

namespace overlap {

/// `amount` of a resource that a task uses over its whole body: CU·seconds of compute units, bytes of the
/// rest. Where the resource is short, users get shares in proportion to their weights.
struct Demand {
    ResourceId resource = 0;
    double amount = 0;
    double weight = 1;
};

/// `units` of a resource taken away from everybody else for as long as the body runs, used or not.
struct Hold {
    ResourceId resource = 0;
    double units = 0;
    /// Of the holds of one resource that aren't added up, only the largest counts.
    bool adds_up = true;
};

/// What a task must be given of a resource's units before its setup, and keeps until its body is over: its
/// turn on a DMA engine, the compute units that its thread blocks wait for.
struct Claim {
    ResourceId resource = 0;
    int least = 1;        ///< it starts with so many …
    int most = 1;         ///< … takes more as they come free, up to so many …
    bool yields = false;  ///< … and leaves them to tasks of higher priority
    bool as_enqueued =
        false;  ///< after all such claims of lower task number, also of tasks that aren't ready
    /// From this share of the body on it keeps `tail_units` at most: a last wave of tiles that leaves units.
    double tail = 1;
    int tail_units = 0;
    /// Not 0: the body is so many thread blocks of equal work. They start with whatever units are free, and
    /// share these as Crowding says rather than wait; those that find none are placed as units come free
    /// (sim/engine/thread_blocks.hpp).
    int blocks = 0;
    /// Not 0: the body is so many tiles, `waves` of them one after the other where it has `most` units from
    /// its start. Units that it lacks make it longer, not slower (sim/engine/tile_waves.hpp).
    int tiles = 0;
    int waves = 0;
    /// Of such a task: the first-level cache that its thread blocks leave of a unit, also to kernels that
    /// wait for the unit and begin as it comes free: the cache is not divided anew then. 0: all that they
    /// need.
    Bytes cache_left = {};
};

/// Of a kernel whose thread blocks are placed on units as these come free (Claim::blocks).
struct Crowding {
    Seconds unit;         ///< its body on one unit, with however many blocks
    int together;         ///< blocks that a unit has room for; so many each get where they had to wait
    double beside_tiles;  ///< share of a unit's rate while a task with tiles has units of the resource
    /// What the loads of a unit take of its cache. Units that blocks waited for run at no more than the share
    /// of that which is left (Claim::cache_left). 0: any is enough.
    Bytes in_flight;
};

/// How the end of a body is seen where nobody is told of it: by polls, `first` after the task's stream began
/// to wait and every `period` from then. A stream began to wait where the first of its tasks that went on
/// without a gap began. The polls of several streams of a GPU are `apart`. While a kernel runs on the GPU
/// that waits, ends are seen at once. Such a task is launched at least `step` after the one before it, if its
/// stream goes on from one to the other without a gap.
/// Awaited ends, those that other streams wait for, are events: their stream goes on when they have been
/// seen, not before. Those marked so (Cost::awaited) are looked for in `queues` by turns, in the order in
/// which a GPU's tasks were enqueued; of one queue, an end is seen only after those before it. 0: streams
/// wait for no event.
struct Polling {
    Seconds first, period, apart, step = Seconds();
    int queues = 0;
};
/// When a body is seen to be over that ends so long after the stream began to wait. Polls are not exact: one
/// that comes within 1 µs of the end sees it or not, and the time is the mean of both.
Seconds seen_after(const Polling& polling, Seconds elapsed);

/// What one task costs alone. In order: launch, its turn on its stream, its `claim`, setup, body, completion.
/// The stream and what it claimed are free again after the body; the task has ended after the completion.
/// Successors wait beyond that, by kind of edge: on its own stream not at all, `handoff` on another stream,
/// `remote_handoff` on another GPU, and `flag` over a progress edge, from when the flag is set.
struct Cost {
    Seconds launch;
    bool launch_ahead = false;  ///< launched while the stream is still busy with the task before
    /// Not 0: a GPU launches such tasks one at a time, and one that had to wait for another takes so long
    /// instead of `launch`.
    Seconds queued_launch;
    Seconds setup;
    Seconds switch_over;  ///< more of it, where what it claims has served another stream before
    Seconds body;         ///< at the top rate; demands may make it longer
    std::optional<Crowding> crowding;
    Seconds completion;
    /// Not 0: a GPU sees the ends of such tasks one after another, at least so far apart.
    Seconds completions_apart;
    std::optional<Polling> polling;  ///< its end is that, instead of a completion
    Seconds event;  ///< an event after it: its stream and a DMA engine that it claims are busy so much longer
    bool awaited = false;  ///< its end is an event, also if no task of another stream waits for it
    Seconds handoff;
    Seconds remote_handoff;
    Seconds flag;
    std::optional<Claim> claim;
    boost::container::small_vector<Demand, 6> demands;  ///< rarely more: a price is made without allocation
    boost::container::small_vector<Hold, 1> holds;
};

/// Duration of the body when nothing else runs: the top rate, or the demand that takes longest.
Seconds isolated_body(const Cost& cost, const ResourceTable& resources);
/// launch + setup + body + completion, or until it is seen, when nothing else runs.
Seconds isolated_time(const Cost& cost, const ResourceTable& resources);

/// A machine as the cost models see it: the topology with its resources, the fitted parameters of its device,
/// and for how long its GPUs multiply without a rest, which sets their clock under a power cap (0: a single
/// kernel).
struct Machine {
    Topology topology;
    ResourceTable resources;
    Calibration calibration;
    Seconds sustained;
};

/// Contract: `cost` is a pure function of the task and the machine; it ignores every other task. All times
/// are positive or zero and finite, and grow with the work. Called only for tasks that `handles` accepts.
class CostModel {
public:
    virtual ~CostModel() = default;
    virtual bool handles(const Task& task) const = 0;
    virtual Cost cost(const Task& task, const Machine& machine) const = 0;
};

}  // namespace overlap
