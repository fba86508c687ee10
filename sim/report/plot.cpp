#include "sim/report/plot.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstdio>
#include <sstream>

#include "sim/core/output_file.hpp"
#include "sim/report/gnuplot.hpp"
#include "sim/report/look.hpp"

namespace overlap {
namespace {

constexpr double band_share = 0.10;     // ± around the diagonal
constexpr double least_error_pct = 20;  // the error axis shows at least this
constexpr double most_error_pct = 100;  // points with larger errors lie on the edge
constexpr int panel_width = 620, panel_height = 600, legend_line = 22;

/// Gnuplot's numbers of open circles, squares, triangles, diamonds, triangles upside down.
constexpr std::array<int, shape_count> markers{6, 4, 8, 12, 10};

std::string block(std::size_t panel, char kind, std::size_t index) {
    return "$p" + std::to_string(panel) + kind + std::to_string(index);
}

void put_data(std::ostream& out, const PlotPanel& panel, std::size_t number) {
    for (std::size_t i = 0; i < panel.bands.size(); ++i) {
        out << block(number, 'b', i) << " << EOD\n";
        for (const auto& [x, low, middle, high] : panel.bands[i].edges)
            out << x << ' ' << low << ' ' << middle << ' ' << high << '\n';
        out << "EOD\n";
    }
    for (std::size_t i = 0; i < panel.series.size(); ++i) {
        out << block(number, 's', i) << " << EOD\n";
        for (const auto& [x, y] : panel.series[i].points) out << x << ' ' << y << '\n';
        out << "EOD\n";
    }
}

void put_axis(std::ostream& out, char name, const PlotAxis& axis) {
    out << "set " << name << "label " << gnuplot_quoted(axis.label)
        << (name == 'x' ? " offset 0,0.4\n" : "\n") << (axis.logarithmic ? "set" : "unset") << " logscale "
        << name << '\n'
        << "set format " << name << (axis.logarithmic ? " '%.10g'\n" : " '%g'\n");
    if (axis.limits.first == axis.limits.second)
        out << "set " << name << "range [*:*]\n";
    else
        out << "set " << name << "range [" << axis.limits.first << ':' << axis.limits.second << "]\n";
}

void put_panel(std::ostream& out, const PlotPanel& panel, std::size_t number) {
    out << "set title " << gnuplot_quoted(panel.title) << '\n'
        << (panel.square ? "set size ratio 1\n" : "set size noratio\n");
    put_axis(out, 'x', panel.x);
    put_axis(out, 'y', panel.y);
    std::vector<std::string> layers;
    for (std::size_t i = 0; i < panel.bands.size(); ++i) {
        const std::string data = block(number, 'b', i);
        layers.push_back(data + " using 1:2:4 with filledcurves fc rgb '#DDDDDD' fs solid noborder title " +
                         gnuplot_quoted(panel.bands[i].name));
        layers.push_back(data + " using 1:3 with lines lc rgb '#555555' lw 1 notitle");
    }
    for (std::size_t i = 0; i < panel.series.size(); ++i) {
        const PlotSeries& series = panel.series[i];
        const Look look = look_of(i);
        const std::string data = block(number, 's', i), colour = " lc rgb '" + look.colour + "'";
        const std::string marker = " pt " + std::to_string(markers.at(look.shape));
        // A title of its own: its marker is larger than a point.
        layers.push_back(data + " using 1:2 with points" + marker + " ps 0.45 lw 0.8" + colour + " notitle");
        layers.push_back("keyentry with points" + marker + " ps 0.9 lw 1.5" + colour + " title " +
                         gnuplot_quoted(series.name));
    }
    out << "plot ";
    for (std::size_t i = 0; i < layers.size(); ++i) out << (i == 0 ? "" : ", \\\n     ") << layers[i];
    out << '\n';
}

/// The decade's 1, 2 or 5 at or below, or at or above.
double round_number(double value, bool up) {
    const double decade = std::pow(10.0, std::floor(std::log10(value)));
    double best = up ? 10 * decade : decade;
    for (const double step : {1.0, 2.0, 5.0}) {
        const double at = step * decade;
        if (up && at >= value) best = std::min(best, at);
        if (!up && at <= value) best = std::max(best, at);
    }
    return best;
}

std::string with_errors(const PlotSeries& series) {
    std::vector<double> errors;
    double sum = 0;
    for (const auto& [measured, predicted] : series.points) {
        errors.push_back(std::abs(predicted / measured - 1));
        sum += errors.back();
    }
    std::sort(errors.begin(), errors.end());
    char text[80];
    std::snprintf(text, sizeof text, ": n = %zu, mean %.1f %%, p90 %.1f %%", errors.size(),
                  100 * sum / static_cast<double>(errors.size()), 100 * errors[errors.size() * 9 / 10]);
    return series.name + text;
}

}  // namespace

Plot comparison_plot(const std::string& title, const std::string& quantity, const std::string& unit,
                     const std::vector<PlotSeries>& series) {
    PlotPanel values{.title = "Predicted against measured",
                     .x = {"measured " + quantity + " [" + unit + "]", true},
                     .y = {"predicted " + quantity + " [" + unit + "]", true},
                     .bands = {},
                     .series = {},
                     .square = true};
    PlotPanel errors{.title = "Error against measured",
                     .x = values.x,
                     .y = {"predicted / measured - 1 [%], at most 100", false},
                     .bands = {},
                     .series = {}};
    double low = 0, high = 0, worst = least_error_pct;
    for (const PlotSeries& one : series) {
        if (one.points.empty()) continue;
        values.series.push_back({with_errors(one), one.points});
        errors.series.push_back({one.name, {}});
        for (const auto& [measured, predicted] : one.points) {
            assert(measured > 0 && predicted > 0);
            const double error = std::min(100 * (predicted / measured - 1), most_error_pct);
            errors.series.back().points.push_back({measured, error});
            worst = std::max(worst, std::abs(error));
            const auto [less, more] = std::minmax(measured, predicted);
            low = low > 0 ? std::min(low, less) : less;
            high = std::max(high, more);
        }
    }
    if (values.series.empty()) return {title, {values, errors}};
    low = round_number(low, false);
    high = round_number(high * 1.0001, true);
    values.x.limits = values.y.limits = errors.x.limits = {low, high};
    worst = std::ceil(worst / 10) * 10;
    errors.y.limits = {-worst, worst};
    const auto edge = [](double at) {
        return PlotBand::Edge{at, at * (1 - band_share), at, at * (1 + band_share)};
    };
    values.bands.push_back({"within 10 %", {edge(low), edge(high)}});
    constexpr double band_pct = 100 * band_share;
    errors.bands.push_back({"within 10 %", {{low, -band_pct, 0, band_pct}, {high, -band_pct, 0, band_pct}}});
    return {title, {values, errors}};
}

std::string to_gnuplot(const Plot& plot) {
    assert(!plot.panels.empty());
    std::size_t lines = 0;
    for (const PlotPanel& panel : plot.panels)
        lines = std::max(lines, panel.bands.size() + panel.series.size());
    std::ostringstream out;
    out.precision(7);
    for (std::size_t i = 0; i < plot.panels.size(); ++i) put_data(out, plot.panels[i], i);
    out << "set terminal svg size " << panel_width * static_cast<int>(plot.panels.size()) << ','
        << panel_height + legend_line * static_cast<int>(lines)
        << " noenhanced font 'sans-serif,15' background '#FFFFFF'\n"
        << "set encoding utf8\n"
        << "set border 3 lc rgb '#555555'\nset tics nomirror out\nset grid lc rgb '#E6E6E6' lw 1\n"
        << "set key bmargin center vertical maxcols 1 samplen 2 Left reverse\n"
        << "set multiplot layout 1," << plot.panels.size() << " title " << gnuplot_quoted(plot.title)
        << " font 'sans-serif,18'\n";
    for (std::size_t i = 0; i < plot.panels.size(); ++i) put_panel(out, plot.panels[i], i);
    out << "unset multiplot\n";
    return out.str();
}

void write_svg(const std::filesystem::path& file, const Plot& plot) {
    write_file_atomically(file, run_gnuplot(to_gnuplot(plot)));
}

}  // namespace overlap
