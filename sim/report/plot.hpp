#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace overlap {

struct PlotPoint {
    double x, y;
};

/// Points of one class: a colour, a marker and a line of the legend.
struct PlotSeries {
    std::string name;
    std::vector<PlotPoint> points;
};

/// A grey band from `low` to `high` at each x, and a line through its middle.
struct PlotBand {
    struct Edge {
        double x, low, middle, high;
    };
    std::string name;
    std::vector<Edge> edges;
};

/// `label` ends with the unit in brackets. Without limits (low == high) the data set the range.
struct PlotAxis {
    std::string label;
    bool logarithmic = false;
    std::pair<double, double> limits{0, 0};
};

struct PlotPanel {
    std::string title;
    PlotAxis x, y;
    std::vector<PlotBand> bands;
    std::vector<PlotSeries> series;
    bool square = false;
};

/// Panels side by side.
struct Plot {
    std::string title;
    std::vector<PlotPanel> panels;
};

/// Measured (x > 0) against predicted (y > 0) on equal logarithmic axes with the diagonal ± 10 %; beside it
/// the error in per cent against the measured value. The legend gives count, mean error and p90 error of each
/// class. `quantity` and `unit` label the axes: "GEMM time" and "us".
Plot comparison_plot(const std::string& title, const std::string& quantity, const std::string& unit,
                     const std::vector<PlotSeries>& series);

/// The plot in gnuplot's language, with its data, for the SVG terminal: a marker (`<use … translate`) for
/// every point and every line of a legend.
std::string to_gnuplot(const Plot& plot);

/// Writes `plot` as an SVG file by gnuplot (5.2 or newer). The same plot and gnuplot give the same bytes.
/// Throws UserError if gnuplot is missing or the file can't be written.
void write_svg(const std::filesystem::path& file, const Plot& plot);

}  // namespace overlap
