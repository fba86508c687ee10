#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/resources.hpp"
#include "sim/core/config_reader.hpp"
#include "sim/core/energy.hpp"
#include "sim/core/timeline.hpp"

namespace overlap {

/// Where makespan − ideal went; the sum of all is exactly that difference. Each of the first four is what the
/// run gains when one effect more is switched off, in this order: contention, launch, packing, decomposition.
/// One of these is negative where the run is faster with the effect: its tasks then meet in another order.
struct Losses {
    Seconds contention;     ///< computation and communication sharing compute units, HBM and caches
    Seconds launch;         ///< launches, DMA commands, completions, waits between streams
    Seconds packing;        ///< local copies around fused GEMMs
    Seconds decomposition;  ///< parts of a GEMM being slower than the whole
    Seconds pattern;     ///< the schedule's transfers alone being slower than those of `ideal` (idle links)
    Seconds fill_drain;  ///< one side waiting for the first pieces, or for the last
};

/// Shares of capacity used over the makespan, mean over all resources of the kind; 0 … 1.
struct Utilisation {
    double cu = 0;
    double hbm = 0;
    double link = 0;
    double dma = 0;
};

/// Use of one resource over time: `value` holds from `time` until the next sample. A task's use is taken as
/// even over its body, so bytes are exact and rates are means.
struct CounterSample {
    Seconds time;
    double value = 0;
};
struct Counter {
    ResourceKind kind = ResourceKind::hbm;
    int gpu = -1;  ///< −1 for links
    std::string name;
    double capacity = 0;  ///< bytes/s
    std::vector<CounterSample> samples;
};

/// One run, as data; the renderings beside this file only format it.
struct RunResult {
    Json config;           ///< resolved: every default filled in
    std::string scenario;  ///< one line for people: "gemm 32768x7168x8192 bf16, all_gather first, 8 x mi300x"
    Seconds makespan, serial, gemm, comm, exposed_comm;
    /// The longer of computation alone and communication alone, without latencies and contention: no order of
    /// the tasks is faster. Computation is the whole GEMM, or its parts where these are faster. Communication
    /// is that of `serial` (all peers at once), or this schedule's where that is faster (LeastTimes).
    Seconds ideal;
    Seconds makespan_p10, makespan_p90;  ///< over the seeds; makespan is their median
    std::size_t seeds = 1;               ///< simulated, 1 where nothing is left unspecified
    double speedup = 0;                  ///< serial / makespan
    std::optional<double>
        overlap_efficiency;  ///< (speedup − 1) / (serial/ideal − 1); none where there is nothing to gain
    Losses losses;
    Utilisation utilisation;
    double comm_cus = 0;  ///< compute units, the most that communication has of one GPU at one time
    Bytes staging;        ///< memory on one GPU beyond operands and result (sim/schedules/staging.hpp)
    std::optional<Energy> energy;  ///< none where the device's constants are not known
    std::size_t tasks = 0;
    std::string engine;
    double wall_ms = 0;
    Timeline timeline;
    std::vector<Counter> counters;  ///< HBM of every GPU and every link in use
};

}  // namespace overlap
