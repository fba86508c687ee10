#pragma once

#include "sim/report/run/result.hpp"

namespace overlap {

/// What a task did, for the arguments of its slice in a trace: "shape", "bytes", "GB/s", "TFLOP/s", "source",
/// "destination", "agent", "shard", "step". Rates are those that the body achieved, beside all other tasks.
/// `operators`: names of a list's operators; `gpus`: of the run.
Json slice_facts(const Task& task, const Interval& body, const std::vector<std::string>& operators, int gpus);

}  // namespace overlap
