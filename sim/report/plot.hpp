#pragma once

#include <string>
#include <vector>

#include "sim/report/gnuplot.hpp"

namespace overlap {

struct PlotPoint {
    double measured, predicted;  ///< above 0
};

/// Points of one class: a colour, a marker and a line of the legend.
struct PlotSeries {
    std::string name;
    std::vector<PlotPoint> points;
};

/// Measured against predicted on equal logarithmic axes with the diagonal ± 10 %; beside it the error in per
/// cent against the measured value. The legend gives count, mean error and p90 error of each class.
/// `quantity` and `unit` label the axes: "GEMM time" and "us". Every point and every line of a legend is a marker
/// of its own in SVG (`<use … translate`).
GnuplotScript comparison_plot(const std::string& title, const std::string& quantity, const std::string& unit,
                              const std::vector<PlotSeries>& series);

}  // namespace overlap
