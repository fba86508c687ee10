#pragma once

#include <set>

#include "sim/importers/recorded_list.hpp"

namespace overlap {

/// What of a list was recorded of tensor parallelism: GEMMs of pairs, by name, and the GPUs that a pair joins.
struct TensorPairs {
    std::set<std::string> opens;   ///< behind an all-gather of its A: has a part of the columns of B
    std::set<std::string> closes;  ///< before a reduce-scatter or an all-reduce: has a part of the rows of B
    std::int64_t degree = 0;       ///< GPUs of a group
    bool shares_tokens =
        false;  ///< outside of such blocks a GPU has a part of the tokens (sequence parallelism)
};

/// An operator as it is with another degree.
struct ChangedOperator {
    Json op = {};  ///< a GEMM or a collective that has other sizes or another group, to be priced; else null
    double share = 1;  ///< what it takes of its recorded time where it has no price; 0: it is gone
};

/// The operators of `list`, with its spans, as they are if each group of tensor parallelism has `to` GPUs and the same
/// tokens. GEMMs of pairs, and those between them, have parts of columns or rows; attention, kernels of parts and the
/// optimiser take as much of their time as the part has of the recorded one; all else stays. Of `ranks` GPUs those that
/// groups do not join are data-parallel. Throws UserError, without a place, where that can't be.
std::vector<ChangedOperator> with_degree(const RecordedList& list, const TensorPairs& pairs,
                                         std::int64_t ranks, std::int64_t to);

/// Whether a kernel updates weights.
bool is_of_optimiser(const RecordedSpan& span);
/// Whether a kernel reads vectors of the model's width of all tokens, such as a sum of parts.
bool reads_whole_tokens(const RecordedSpan& span, std::int64_t tokens, std::int64_t width);

}  // namespace overlap
