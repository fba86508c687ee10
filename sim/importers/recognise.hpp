#pragma once

#include <string>
#include <vector>

#include "sim/core/json.hpp"
#include "sim/importers/trace_importer.hpp"

namespace overlap {

/// The run that a recording shows.
struct Recognised {
    std::string what;    ///< "all_gather by a library's kernel, then a GEMM"; empty if none was recognised
    Json config;         ///< run config without topology: schedule, params, workload
    std::string why_not; ///< what is missing, if none was recognised
    std::vector<std::string> notes;  ///< what was assumed, a line each
};

/// Judges by the kernels of one iteration, which all ranks share, and by what the profiler says of them: a pair of one
/// collective and one GEMM; PyTorch's async tensor parallelism, by its copies between GPUs; else a list of operators.
/// `gemm`: the shape of a pair's GEMM where the recording has none. In a list, kernels without shapes are operators of
/// recorded time. An operator needs the one before it on its stream, and of other streams what ended last before it
/// began, which may be more than what the program waited for.
Recognised recognise(const std::vector<RecordedSpan>& iteration, const std::optional<GemmShape>& gemm);

}  // namespace overlap
