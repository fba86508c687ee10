#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/core/json.hpp"
#include "sim/importers/recorded_list.hpp"
#include "sim/importers/trace_importer.hpp"

namespace overlap {

/// The run that a recording shows.
struct Recognised {
    std::string what = {};  ///< "all_gather by a library's kernel, then a GEMM"; empty if none was recognised
    Json config = {};       ///< run config without topology: schedule, params, workload
    std::string why_not = {};             ///< what is missing, if none was recognised
    std::vector<std::string> notes = {};  ///< what was assumed, a line each
    std::int64_t gpus = 0;                ///< that the config is for: of a pair those of its collective
};

/// What a pair without shapes says of its GEMM.
struct ShapeHint {
    std::int64_t operand = 0;  ///< elements of A that are gathered, or of C that are sent, over all ranks
    bool of_a = true;
    DType dtype = DType::bf16;
    std::int64_t parts = 1;  ///< GEMMs, each of so many of the rows
    Seconds time;            ///< of one of them
};
/// A shape with that operand whose GEMMs take that time; none if there is none.
using ShapeGuess = std::function<std::optional<GemmShape>(const ShapeHint&)>;

struct RecogniseOptions {
    std::optional<GemmShape> gemm = {};  ///< shape of a pair's GEMM where the recording has none
    ShapeGuess guess = nullptr;          ///< else its shape
    HasPrice has_price = nullptr;        ///< of the machine
    std::int64_t ranks = 0;  ///< of the job; those in the iteration are alike, and at least as many
};

/// Judges by the kernels of one iteration, which all ranks share, and by what the profiler says of them: a pair of
/// one collective and one GEMM; PyTorch's async tensor parallelism, by its copies between GPUs; else a list of
/// operators (list_of).
Recognised recognise(const std::vector<RecordedSpan>& iteration, const RecogniseOptions& options = {});

}  // namespace overlap
