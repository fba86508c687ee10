#pragma once

#include <functional>

#include "sim/importers/recorded_list.hpp"

namespace overlap {

/// How the list of one GPU is spread over several.
struct Spread {
    std::int64_t tp = 1, dp = 1;  ///< GPUs of a tensor-parallel group; such groups, each with its own tokens
    bool sequence_parallel = false;  ///< all-gathers and reduce-scatters instead of all-reduces
    /// What a part of a GEMM takes, as a share of what the whole takes. Null: by FLOPs.
    std::function<double(const GemmShape& part, const GemmShape& whole)> share = nullptr;

    std::int64_t ranks() const { return tp * dp; }
};

/// Makes the list of one GPU that of each of tp x dp: GEMMs are cut as Megatron-LM does (the first of a block by
/// columns, the last by rows), what lies between them and the optimiser take 1 / tp of their time, and collectives
/// come after the last GEMM of a block (with sequence_parallel also before the first) and, over dp, after the
/// gradients of 25 MB of weights, on a stream of their own. Recorded times are scaled. Throws UserError where the trace
/// has no shapes, or tp does not divide them.
void spread(RecordedList& list, const Spread& how);

}  // namespace overlap
