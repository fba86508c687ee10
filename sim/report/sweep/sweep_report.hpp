#pragma once

#include <string>

#include "sim/report/sweep/sweep_points.hpp"

namespace overlap {

/// A page that needs no other file: what was swept, the best schedule by scenario, heat maps, Pareto fronts,
/// losses and a table of all points. `version`: of the program that makes it.
std::string to_html(const SweepPoints& points, const std::string& version);

}  // namespace overlap
