#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/resources.hpp"
#include "sim/confidence/confidence.hpp"
#include "sim/core/config_reader.hpp"
#include "sim/core/energy.hpp"
#include "sim/core/timeline.hpp"

namespace overlap {

/// Losses: the parts of makespan − ideal, which add up to it exactly. `power` is what a steady state takes longer
/// than a run from cool GPUs; all others are those of that run. `host` is the gain without the time of the hosts'
/// calls. Each of the first four is the gain when one more effect is switched off, in this order: contention, launch,
/// packing, decomposition. A loss is negative if the run is faster with the effect, because its tasks then run in
/// another order.
struct Losses {
    Seconds contention;     ///< computation and communication sharing compute units, HBM and caches
    Seconds launch;         ///< launches, DMA commands, completions, waits between streams
    Seconds packing;        ///< local copies around fused GEMMs
    Seconds decomposition;  ///< parts of a GEMM that are slower than their share of the whole
    Seconds pattern;        ///< this schedule's transfers alone are slower than those of `ideal` (idle links)
    Seconds fill_drain;     ///< one side waits for the first or the last pieces
    Seconds host = {};      ///< GPUs wait for their hosts' calls; 0 where all is enqueued beforehand
    Seconds power = {};     ///< the clock of a steady state; 0 in a run from cool GPUs
};

/// What settles when a workload runs back to back.
struct SteadyState {
    double gemm_speed = 1;  ///< of a cool GPU's arithmetic
    Watts power;            ///< mean of all GPUs over one iteration
};

/// Fraction of capacity used over the makespan, mean over all resources of the kind; 0 … 1.
struct Utilisation {
    double cu = 0;
    double hbm = 0;
    double link = 0;
    double dma = 0;
};

/// Use of one resource over time: `value` holds from `time` until the next sample. A task's use is spread
/// evenly over its body, so bytes are exact and rates are means.
struct CounterSample {
    Seconds time;
    double value = 0;
};
struct Counter {
    int gpu = -1;  ///< −1 for links
    std::string name;
    std::vector<CounterSample> samples;
};

/// What a trace tells of the tasks besides their spans. Task i of the graph is span i of the timeline.
struct Recording {
    TaskGraph graph;
    std::vector<Interval> bodies;  ///< first and last byte or FLOP
    std::vector<TaskId> critical;  ///< tasks that each waited for the one before, up to the last end
};

/// The phases of a run by themselves.
struct Phases {
    Seconds serial;  ///< one after the other, by this schedule's transfers
    Seconds gemm, comm;
    Seconds exposed_comm;  ///< of the run: communication with no computation beside it
};

/// The fastest execution without overlap, by any agent or the vendor's library: what the speed-up is over.
struct BaselineResult {
    Seconds time;
    std::string name;    ///< "serial by NCCL 2.29.2", "serial/-/dma/pull"
    double speedup = 0;  ///< time / makespan
    /// (speedup − 1) / (time/ideal − 1); none if there is nothing to gain
    std::optional<double> overlap_efficiency;
};

/// What a run uses of the machine.
struct Used {
    Utilisation utilisation;
    double comm_cus = 0;  ///< largest number of compute units that communication uses on one GPU at one time
    Bytes staging;        ///< memory on one GPU beyond operands and result (sim/schedules/staging.hpp)
    std::optional<Energy> energy;  ///< none if the device's constants are unknown
};

/// How the run was simulated.
struct Simulation {
    std::string engine;
    std::size_t seeds = 1;  ///< 1 if no order is unspecified
    std::size_t tasks = 0;
    int gpus = 0, simulated_gpus = 0;  ///< GPUs that are not simulated are each like one that is
    double wall_ms = 0;
};

/// What happened, over time.
struct Observed {
    Timeline timeline;
    std::vector<Counter> counters;  ///< HBM of every GPU and every link in use
    std::optional<Recording> recording = {};
};

/// A tenth of the seeds is below, a tenth above.
struct SeedRange {
    Seconds p10, p90;
};

/// One run, as data; the renderings beside this file only format it.
struct RunResult {
    Json config;  ///< resolved: every default filled in
    /// One line for reports: "gemm 32768x7168x8192 bf16, all_gather first, 8 x mi300x"
    std::string scenario;
    Seconds makespan;  ///< the median over the seeds
    SeedRange range;
    /// The longer of computation alone and communication alone, without latencies and contention; no order of the
    /// tasks is faster. Computation: the whole GEMM, or its parts if they are faster. Communication: the
    /// fastest of `phases.serial`, of the baseline and of this schedule. Of a list also the longest chain (LeastTimes).
    Seconds ideal;
    Phases phases;
    BaselineResult baseline;
    Losses losses;
    Used used;
    Confidence confidence;
    std::optional<SteadyState> steady = {};  ///< none of a run from cool GPUs
    bool own_kernel = false;  ///< some schedule of it needs a kernel that no vendor's library has
    Simulation simulation;
    Observed observed;
};

/// What the what-ifs of a command changed, and what to know about its numbers: part of every output.
struct Remarks {
    /// One line each, about surprising what-if changes and pairs of a list that run whole
    std::vector<std::string> notes;
    Json what_if = Json::object();  ///< as in a run config
};

}  // namespace overlap
