#pragma once

#include <string>

#include "sim/report/sweep/sweep_points.hpp"

namespace overlap {

/// A self-contained page: the axes, the best schedule by scenario, heat maps, Pareto fronts, losses and a
/// table of all points. `version`: of the program that makes the page.
std::string to_html(const SweepPoints& points, const std::string& version);

}  // namespace overlap
