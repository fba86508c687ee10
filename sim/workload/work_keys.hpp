#pragma once

#include "sim/core/input_keys.hpp"
#include "sim/core/operators.hpp"

namespace overlap {

/// Keys of a GEMM's shape.
const std::vector<InputKey<GemmShape>>& gemm_keys();
/// Keys of a fused attention's shape.
const std::vector<InputKey<AttentionCall>>& attention_keys();

}  // namespace overlap
