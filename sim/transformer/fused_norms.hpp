#pragma once

#include <vector>

#include "sim/transformer/model.hpp"
#include "sim/transformer/step.hpp"
#include "sim/workload/workload.hpp"

namespace overlap {

/// Whether a layer's norms and sums of residuals are done by the all-reduces before them (Decoding::fused_norms).
bool reduces_normalise(const StepShape& step, const LayerShape& layer);

/// A layer's operators without its norms and its sum with its input; who needs one of them needs what that needs.
std::vector<Operator> without_norms(std::vector<Operator> operators);

}  // namespace overlap
