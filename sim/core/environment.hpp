#pragma once

#include <optional>
#include <string>

#include "sim/core/json.hpp"

namespace overlap {

/// A variable of the environment; none if it is not set. Throws UserError with its name unless
/// it is a number in `range`.
std::optional<double> number_from_environment(const std::string& name, Range range);

}  // namespace overlap
