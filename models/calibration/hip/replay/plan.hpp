#pragma once

#include <string>
#include <vector>

#include "models/calibration/hip/gemm.hpp"

namespace overlap::hip {

/// A dense row-major bf16 matrix of one GPU.
struct PlanBuffer {
    int gpu = 0;
    std::string name;
    std::int64_t rows = 0, columns = 0;
};

struct PlanBlock {
    std::size_t buffer = 0;
    std::int64_t row = 0, column = 0, rows = 0, columns = 0;
};

enum class PlanKind { gemm, copy, local_copy, reduce, wait };
inline constexpr const char* plan_kind_names[] = {"gemm", "copy", "local_copy", "reduce", "memory_bound"};

struct PlanTask {
    PlanKind kind = PlanKind::gemm;
    std::string name;
    int gpu = 0;
    std::size_t stream = 0;           ///< of Plan::streams
    std::vector<std::size_t> after;   ///< earlier tasks
    std::vector<PlanBlock> from, to;  ///< as in sim/schedules/placement.hpp
    bool accumulate = false;          ///< GEMM: C += A·B
    int units = 0;                    ///< GEMM: compute units that it may use; 0: all
    bool dma = true;                  ///< copy: by a DMA engine, else by a kernel of `blocks` blocks
    int blocks = 0;                   ///< local copy: 0: the kernel of schedules, unless `dma`
    double wait_us = 0;               ///< wait: nothing runs on the stream for so long
};

struct PlanStream {
    int gpu = 0;
    std::string name;
    bool high_priority = false;
};

/// How a plan is measured: the key "measure".
struct PlanMeasure {
    int repeats = 0;  ///< timed executions; 0: as the program is told
    int warm_ups = 2;
    bool rest = true;    ///< wait for the peak clock before each execution
    bool cold = true;    ///< overwrite the caches before each execution
    bool marks = false;  ///< an event after every task, in every execution
};

/// A checked file of `sim … --graph FILE`: indices in range, blocks inside their buffers, supported sizes,
/// and no more tasks a stream than can be enqueued behind a closed gate.
struct Plan {
    std::string config;  ///< the run config, JSON
    std::string system;  ///< name of the topology; empty if the plan says none
    std::string name;    ///< for reports
    PlanMeasure measure;
    bool placed = true;   ///< else its places are those of own_places.hpp
    bool gathers = true;  ///< all_gather > gemm; else gemm > reduce_scatter
    bool spans = false;   ///< record times of each task
    int gpus = 0, chunks = 1;
    std::int64_t m = 0, n = 0, k = 0;
    std::vector<PlanBuffer> buffers;
    std::vector<PlanStream> streams;
    std::vector<PlanTask> tasks;
    std::vector<PlanBlock> inputs, results;
};

/// The plan of a line, or the plans of a list, which are executed in turn. Throws UserError if `text` is none, or one that
/// replay can't run.
std::vector<Plan> read_plans(const std::string& text);

}  // namespace overlap::hip
