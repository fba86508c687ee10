#pragma once

#include "sim/core/input_keys.hpp"
#include "sim/core/operators.hpp"

// Keys of operators that stand in several kinds of files: workloads and plans.
namespace overlap {

InputKeys<GemmShape> gemm_keys();
InputKeys<RankGroup> group_keys();
InputKeys<AttentionCall> attention_keys();
InputKeys<ExpertExchange> exchange_keys();

}  // namespace overlap
