#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/schedules/schedule.hpp"

namespace overlap {

/// A dense row-major matrix in the memory of one GPU: "a", "b", "c" of the GEMM (gathered A, whole C, or C of
/// all GPUs one after another where results are gathered), "stage
/// a" and "stage c" (rows of fused steps in the order of steps), "parts" (partial results that have arrived).
struct Buffer {
    int gpu = 0;
    std::string name;
    std::int64_t rows = 0, columns = 0;
    DType dtype = DType::bf16;
};

/// A block of a buffer.
struct Block {
    std::size_t buffer = 0;
    std::int64_t row = 0, column = 0, rows = 0, columns = 0;
};

/// What a task reads and what it writes. GEMM: A, B; C. Copy: one; one. Local copy: so many; as many. Sum:
/// its parts; one, which may be one of them.
struct Operands {
    std::vector<Block> from, to;
};

/// Where the data of a task graph lie, so that it can be executed. No block is written while another task may
/// need what it held before, and every piece of a buffer is written once, but for the C of an accumulating
/// GEMM and sums in place.
struct Placement {
    std::vector<Buffer> buffers;
    std::vector<Operands> tasks;  ///< by TaskId
    std::vector<Block> inputs;    ///< there from the start: own rows of A (all of A before a reduction), B
    std::vector<Block> results;   ///< what `serial` leaves: rows of C; the place in the buffer is that in C
};

/// A place for every piece that the graph of a schedule moves, of an all-gather before or after a GEMM or a
/// GEMM before a reduce-scatter, sharded along M. Throws UserError with the reason for any other.
Placement place(const TaskGraph& graph, const ScheduleEntry& schedule, const Workload& workload,
                const Topology& topology, const ScheduleParams& params);

}  // namespace overlap
