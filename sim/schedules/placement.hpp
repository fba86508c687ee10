#pragma once

#include <string>
#include <vector>

#include "sim/schedules/schedule.hpp"

namespace overlap {

/// A dense row-major matrix in the memory of one GPU: "a", "b", "c" of the GEMM (gathered A; whole C, or the
/// C of all GPUs one after another if results are gathered), "stage a" and "stage c" (rows of fused steps in
/// the order of steps), "parts" (partial results that have arrived).
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

/// Blocks that a task reads and writes. GEMM: A, B; C. Copy: one; one. Local copy: any number; the same
/// number. Sum: its parts; one block, which may be one of the parts.
struct Operands {
    std::vector<Block> from, to;
};

/// Where the data of a task graph lie, so that it can be executed. No block is written while another
/// task may need its old contents. Every piece of a buffer is written once, except the C of an
/// accumulating GEMM and sums in place.
struct Placement {
    std::vector<Buffer> buffers;
    std::vector<Operands> tasks;  ///< by TaskId
    std::vector<Block> inputs;    ///< present at the start: own rows of A (all of A before a reduction), B
    /// The result of `serial`: rows of C; the position in the buffer is that in C
    std::vector<Block> results;
};

/// Places for all pieces in a schedule's graph: an all-gather before or after a GEMM, or a GEMM before a
/// reduce-scatter, sharded along M. Throws UserError with the reason for other workloads.
Placement place(const TaskGraph& graph, const ScheduleEntry& schedule, const Workload& workload,
                const Topology& topology, const ScheduleParams& params);

}  // namespace overlap
