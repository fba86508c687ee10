#include "sim/report/plot.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

#include "sim/core/error_summary.hpp"
#include "sim/core/ranges.hpp"
#include "sim/report/gnuplot_parts.hpp"
#include "sim/report/text_format.hpp"
#include "sim/report/ticks.hpp"

namespace overlap {
namespace {

using namespace gnuplot;

constexpr double band_pct = 10;         // ± around the diagonal
constexpr double least_error_pct = 20;  // the error axis shows at least this
constexpr double most_error_pct = 100;  // points with larger errors lie on the edge
constexpr int panel_width = 620, panel_height = 600;

/// Gnuplot's numbers of open circles, squares, triangles, diamonds, triangles upside down.
constexpr std::array<int, shape_count> markers{6, 4, 8, 12, 10};

double error_pct(const PlotPoint& point) {
    return std::min(100 * (point.predicted / point.measured - 1), most_error_pct);
}

std::string with_errors(const PlotSeries& series) {
    const ErrorSummary errors = summarise(
        mapped(series.points, [](const PlotPoint& point) { return point.predicted / point.measured - 1; }));
    return series.name + ": n = " + std::to_string(errors.count) + ", mean " + percent_text(errors.mean) +
           ", p90 " + percent_text(errors.p90);
}

std::string axis(char name, const std::string& label, bool logarithmic, double low, double high) {
    const std::string letter_of(1, name);
    return axis_title(name, label) + (logarithmic ? "set" : "unset") + " logscale " + letter_of +
           "\nset format " + letter_of + (logarithmic ? " '%.10g'" : " '%g'") + "\nset " + letter_of +
           "range [" + numbers({low}) + ':' + numbers({high}) + "]\n";
}

/// Points of a class, and its line of the legend, whose marker is larger.
std::vector<std::string> layers_of(const std::string& data, std::size_t number, const std::string& name) {
    const Look look = look_of(number);
    const std::string colour = " lc rgb '" + look.colour + "'",
                      marker = " pt " + std::to_string(markers.at(look.shape));
    return {data + " using 1:2 with points" + marker + " ps 0.45 lw 0.8" + colour + " notitle",
            "keyentry with points" + marker + " ps 0.9 lw 1.5" + colour + " title " + gnuplot_quoted(name)};
}

}  // namespace

GnuplotScript comparison_plot(const std::string& title, const std::string& quantity, const std::string& unit,
                              const std::vector<PlotSeries>& series) {
    double low = 0, high = 0, worst = least_error_pct;
    for (const PlotSeries& one : series)
        for (const PlotPoint& point : one.points) {
            assert(point.measured > 0 && point.predicted > 0);
            const auto [less, more] = std::minmax(point.measured, point.predicted);
            low = low > 0 ? std::min(low, less) : less;
            high = std::max(high, more);
            worst = std::max(worst, std::abs(error_pct(point)));
        }
    low = 1 / round_step(1 / low);  // 1, 2 or 5 times a power of ten, and so is the inverse of each
    high = round_step(high * 1.0001);
    worst = std::ceil(worst / 10) * 10;

    DataBlocks blocks;
    std::array<std::string, 2> bands;  // x, low, middle, high: around the diagonal, around 0
    for (const double at : {low, high}) {
        bands[0] += numbers({at, at * (1 - band_pct / 100), at, at * (1 + band_pct / 100)}) + "\n";
        bands[1] += numbers({at, -band_pct, 0, band_pct}) + "\n";
    }
    std::array<std::vector<std::string>, 2> layers;  // of the panels
    for (std::size_t panel = 0; panel < 2; ++panel) {
        const std::string data = blocks.add(bands[panel]);
        layers[panel] = {
            data + " using 1:2:4 with filledcurves fc rgb '#DDDDDD' fs solid noborder title 'within 10 %'",
            data + " using 1:3 with lines lc rgb '#555555' lw 1 notitle"};
    }
    std::size_t drawn = 0;
    for (const PlotSeries& one : series) {
        if (one.points.empty()) continue;
        std::array<std::string, 2> lines;
        for (const PlotPoint& point : one.points) {
            lines[0] += numbers({point.measured, point.predicted}) + "\n";
            lines[1] += numbers({point.measured, error_pct(point)}) + "\n";
        }
        for (std::size_t panel = 0; panel < 2; ++panel)
            for (const std::string& layer :
                 layers_of(blocks.add(lines[panel]), drawn, panel == 0 ? with_errors(one) : one.name))
                layers[panel].push_back(layer);
        ++drawn;
    }
    const std::string of = " " + quantity + " [" + unit + "]";
    return {
        2 * panel_width, panel_height + line_height * static_cast<int>(1 + drawn),
        blocks.text() +
            "set border 3 lc rgb '#555555'\nset tics nomirror out\nset grid lc rgb '#E6E6E6' lw 1\n" +
            "set key bmargin center vertical maxcols 1 samplen 2 Left reverse\nset multiplot layout 1,2 title " +
            gnuplot_quoted(title) +
            " font 'sans-serif,18'\nset title 'Predicted against measured'\nset size ratio 1\n" +
            axis('x', "measured" + of, true, low, high) + axis('y', "predicted" + of, true, low, high) +
            plot_of(layers[0]) + "set title 'Error against measured'\nset size noratio\n" +
            axis('y', "predicted / measured - 1 [%], at most 100", false, -worst, worst) +
            plot_of(layers[1]) + "unset multiplot\n"};
}

}  // namespace overlap
