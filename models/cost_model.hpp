#pragma once

#include <boost/container/small_vector.hpp>
#include <memory>
#include <optional>
#include <variant>

#include "models/calibration.hpp"
#include "models/resources.hpp"
#include "sim/core/task_graph.hpp"

namespace overlap {

/// What a task uses of a resource over its whole body: CU·seconds of compute units, bytes of any other
/// resource. Users of a saturated resource get shares in proportion to their weights.
struct Demand {
    ResourceId resource = 0;
    double amount = 0;
    double weight = 1;
};

/// Takes `units` of a resource away from all other tasks while the body runs, used or not.
struct Hold {
    ResourceId resource = 0;
    double units = 0;
    /// If false, holds of one resource do not add up: the largest counts.
    bool adds_up = true;
};

/// From this fraction of its body on a task keeps at most `units`: its last wave has fewer tiles than units.
struct Tail {
    double from = 1;
    int units = 0;
    friend bool operator==(const Tail&, const Tail&) = default;
};

/// The body is `count` tiles, in `waves` waves if the task has Claim::most units from its start. Missing units
/// make the body longer, not slower (sim/engine/tile_waves.hpp).
struct Tiles {
    int count = 0;
    int waves = 0;
    std::optional<Tail> tail = {};  ///< what a kernel that is not persistent claims instead of tiles
    /// First-level cache per unit that the thread blocks leave to others. It also limits a kernel that waited
    /// for the unit and starts when the unit comes free, because the cache is not divided anew. 0: no limit.
    Bytes cache_left = {};
    /// Number of thread blocks in a cluster; a cluster needs as many free units next to each other.
    int cluster = 1;
    friend bool operator==(const Tiles&, const Tiles&) = default;
};

/// The body is `count` thread blocks of equal work. They start on the units that are free and share these; the
/// other blocks are placed as units come free (sim/engine/thread_blocks.hpp).
struct Blocks {
    int count = 0;
    int together = 1;   ///< thread blocks per unit when the kernel had to wait for units
    Seconds unit = {};  ///< time of the whole body on one unit, however many blocks the unit runs
    /// Fraction of a unit's rate while a task with tiles holds units of the resource
    double beside_tiles = 1;
    /// First-level cache per unit that the blocks' loads need at full rate. A unit that blocks waited for
    /// runs at most at the fraction that is left (Tiles::cache_left). 0: no limit.
    Bytes in_flight = {};
    /// The blocks are so many and so short that each of `count` units has some until the body's end.
    bool to_the_end = false;
    /// How many of the blocks stand two by two, on both units of a pair, if no other copy kernel has made units single
    int paired = 0;
    bool streaming = false;       ///< they fill the memory of the GPU
    double beside_streaming = 1;  ///< as beside_tiles, while a task whose blocks are `streaming` holds units
    friend bool operator==(const Blocks&, const Blocks&) = default;
};

/// Units of a resource that a task must get before its setup and keeps until its body ends: a DMA engine, or
/// the compute units for its thread blocks.
struct Claim {
    ResourceId resource = 0;
    int least = 1;        ///< starts as soon as it gets this many
    int most = 1;         ///< takes more as they come free, up to this many
    bool yields = false;  ///< gives units to tasks of higher priority
    /// How long a task of higher priority that starts beside this one waits with its units for ranks that get theirs
    /// later
    Seconds yields_after = {};
    /// Served after all such claims of lower task number, even if those tasks are not ready yet
    bool as_enqueued = false;
    /// Parts of the body that end at different times and free units; monostate: all units stay to the end
    std::variant<std::monostate, Tail, Tiles, Blocks> parts = {};
};

/// Completions that the driver finds by polling: `first` after the task's stream started waiting, then every
/// `period`. A stream starts waiting with the first task of a gapless sequence. While a kernel
/// runs on the waiting GPU, a completion is seen at once.
///
/// An end is awaited if another stream waits for it; without `own_events`, only if that stream is of another GPU. An awaited
/// end is an event: the task's stream continues only after the event has been seen. Tasks with Cost::awaited are distributed over
/// `queues` queues in the order in which the GPU's tasks were enqueued; within a queue, completions are seen in order.
/// `queues` = 0: streams wait for no event.
struct Polling {
    Seconds first, period;
    int queues = 0;
    bool own_events = true;
    friend bool operator==(const Polling&, const Polling&) = default;
};
/// When the driver sees a body that ends `elapsed` after its stream started waiting. Polls are not exact: a
/// poll within 1 µs of the end may or may not see it, so the result is the mean of both cases.
Seconds seen_after(const Polling& polling, Seconds elapsed);

/// An end that the device signals.
struct Completion {
    Seconds latency = {};  ///< from the end of the body until the end is seen
    Seconds apart = {};    ///< above 0: a GPU sees such ends one after another, at least this far apart
    /// If the end is an event, the stream and a claimed DMA engine stay busy this much longer
    Seconds event = {};
    friend bool operator==(const Completion&, const Completion&) = default;
};

/// From the start of a launch until the device has the task.
struct Launch {
    Seconds time = {};
    /// Above 0: a GPU launches such tasks one at a time. A task that waited for another's launch takes this
    /// long instead of `time`.
    Seconds queued = {};
    bool ahead = false;  ///< launched while the stream still runs the task before
    friend bool operator==(const Launch&, const Launch&) = default;
};

/// How much longer successors wait; those on the same stream wait for the end only.
struct Handoffs {
    Seconds other_stream;
    Seconds other_gpu;
    Seconds flag;  ///< over a progress edge, counted from when the flag is set
    friend bool operator==(const Handoffs&, const Handoffs&) = default;
};

/// What one task costs alone. The phases: launch, its turn on its stream, `claim`, setup, body, end.
/// The stream and the claimed resource are free after the body; the task ends when its end is seen.
struct Cost {
    Launch launch;
    Seconds setup;
    Seconds switch_over;  ///< extra setup when the claimed resource served another stream before
    Seconds body;         ///< at the top rate; demands may make it longer
    std::variant<Completion, Polling> end;
    bool awaited = false;  ///< its end is an event even if no task of another stream waits for it
    Handoffs handoffs;
    std::optional<Claim> claim;
    /// Rarely more than 8, which a copy between nodes has, so pricing needs no allocation
    boost::container::small_vector<Demand, 8> demands;
    boost::container::small_vector<Hold, 1> holds;
};

/// The parts of kind `Parts` that `cost` claims units for; null if it has none.
template <class Parts>
const Parts* claimed(const Cost& cost) {
    return cost.claim ? std::get_if<Parts>(&cost.claim->parts) : nullptr;
}

/// Launch, event and hand-offs of a kernel that a stream runs; nothing else.
Cost kernel_cost(const DeviceLaunch& launch);

/// Duration of the body when nothing else runs: the top rate, or the demand that takes longest.
Seconds isolated_body(const Cost& cost, const ResourceTable& resources);
/// launch + setup + body, until the end is seen, when nothing else runs.
Seconds isolated_time(const Cost& cost, const ResourceTable& resources);

struct MachineEvidence;

/// A machine as the cost models see it: topology, resources, fitted parameters of the device. `sustained`: duration
/// of back-to-back GEMMs, which lowers the clock (0: one kernel). `gemm_speed`: GEMM rate as a fraction of a cool
/// GPU's (models/settled_clock.hpp). `untimed_events`: what a GPU's streams wait for is recorded by events without a time (cudaEventDisableTiming).
struct Machine {
    Topology topology;
    ResourceTable resources;
    Calibration calibration;
    Seconds sustained;
    /// What is known about its prices (sim/confidence); null for machines made in a test or a fit
    std::shared_ptr<const MachineEvidence> evidence = {};
    double gemm_speed = 1;
    bool untimed_events = false;
};

/// Contract: `cost` is a pure function of task and machine, and ignores all other tasks. All times are
/// finite, not negative, and grow with the work. Called only for tasks that `handles` accepts.
class CostModel {
public:
    virtual ~CostModel() = default;
    virtual bool handles(const Task& task) const = 0;
    virtual Cost cost(const Task& task, const Machine& machine) const = 0;
};

}  // namespace overlap
