#pragma once

#include <array>
#include <string>

#include "sim/report/gnuplot.hpp"
#include "sim/report/page/page.hpp"
#include "sim/report/sweep/sweep_points.hpp"

namespace overlap {

/// The axes, the best schedule by scenario, heat maps, Pareto fronts, losses and a table of all points.
Page page_of(const SweepPoints& points);

enum class SweepPlotKind { heat_map, pareto, losses, speedup };
inline const std::array<std::string, 4> sweep_plot_names{"heat_map", "pareto", "losses", "speedup"};

/// What to draw of a sweep, by names as in points.csv. Empty names are chosen automatically.
struct SweepPlot {
    SweepPlotKind kind = SweepPlotKind::heat_map;
    std::string x, y;                  ///< heat map: dimensions
    std::string value = "speedup";     ///< heat map: figure
    std::string against = "comm_cus";  ///< Pareto front: its cost, comm_cus or staging_bytes
    std::string scenario;              ///< empty: the first
};

/// Throws UserError for a name that the sweep doesn't have.
GnuplotScript to_gnuplot(const SweepPoints& points, const SweepPlot& plot);

}  // namespace overlap
