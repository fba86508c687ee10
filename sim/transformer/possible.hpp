#pragma once

#include <string>

#include "sim/transformer/step.hpp"

namespace overlap {

/// Throws UserError that begins with `where` if the model can't be spread like that, or if its sizes are too large.
void require_possible(const Model& model, const StepShape& step, const std::string& where);

}  // namespace overlap
