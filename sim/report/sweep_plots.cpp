#include "sim/report/sweep_plots.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

#include "sim/report/html.hpp"
#include "sim/report/sweep_analysis.hpp"
#include "sim/report/text_format.hpp"

namespace overlap {
namespace {

constexpr int letter = 9, line_height = 22;  // pixels of a letter and a line at the font's size
constexpr int most_labels = 40;              // beyond, the names below an axis would be one on another

std::string shown(const std::string& value) {
    return value.empty() ? "(none)" : value;
}

int longest(const std::vector<std::string>& texts) {
    std::size_t most = 0;
    for (const std::string& text : texts) most = std::max(most, shown(text).size());
    return static_cast<int>(most) * letter;
}

/// Four significant digits, as on the page.
std::string figure(double value) {
    return value == 0 ? "0" : std::abs(value) >= 1000 ? fixed(value, 0) : significant(value);
}

std::string numbers(std::initializer_list<double> values) {
    std::ostringstream out;
    out.precision(10);
    for (const double value : values) out << value << ' ';
    return out.str();
}

/// A text in a data block, where there are no single quotes.
std::string data_text(const std::string& text) {
    return '"' + text + '"';
}

std::string tics(char axis, const std::vector<std::string>& names, const std::string& more = "") {
    std::string text = std::string("set ") + axis + "tics" + more + " (";
    for (std::size_t i = 0; i < names.size(); ++i)
        text += (i == 0 ? "" : ", ") + gnuplot_quoted(shown(names[i])) + " " + std::to_string(i);
    return text + ") scale 0\n";
}

/// About five round numbers on an axis: gnuplot itself puts long ones one on another.
std::string linear_tics(char axis, double length) {
    const double decade = std::pow(10, std::floor(std::log10(length / 5)));
    double step = decade;
    for (const double factor : {2.0, 5.0, 10.0})
        if (step < length / 5) step = factor * decade;
    return std::string("set ") + axis + "tics " + numbers({step}) + "\n";
}

/// Numbers on a logarithmic axis, also where it is less than a decade long.
std::string log_tics(char axis, double low, double high) {
    std::string text;
    for (double decade = std::pow(10, std::floor(std::log10(low))); decade <= high; decade *= 10)
        for (const double step : {1.0, 1.5, 2.0, 3.0, 5.0, 7.0})
            if (step * decade >= low / 1.06 && step * decade <= high * 1.06)
                text += (text.empty() ? "" : ", ") + numbers({step * decade});
    return std::string("set ") + axis + "tics (" + text + ")\n";
}

std::string label(char axis, const std::string& text) {
    return std::string("set ") + axis + "label " + gnuplot_quoted(text) + "\n";
}

std::string heading(const SweepPoints& points, const std::string& what) {
    return "set title " + gnuplot_quoted("Sweep " + points.info.name + ": " + what) +
           "\nset border 3 lc rgb '#555555'\nset tics nomirror out\n";
}

/// The plot command of layers.
std::string plot_of(const std::vector<std::string>& layers) {
    std::string text = "plot ";
    for (const std::string& layer : layers) text += (text.size() == 5 ? "" : ", \\\n     ") + layer;
    return text + "\n";
}

/// Named data blocks of gnuplot, which stand before the commands.
class Blocks {
public:
    /// Returns its name.
    std::string add(const std::string& lines) {
        const std::string name = "$b" + std::to_string(count_++);
        text_ += name + " << EOD\n" + lines + "EOD\n";
        return name;
    }
    const std::string& text() const { return text_; }

private:
    std::string text_;
    int count_ = 0;
};

GnuplotScript draw_heat_map(const SweepPoints& points, const SweepPlot& plot) {
    const auto [first, second] = first_dimensions(points);
    if (first == nullptr) throw UserError("the sweep varies nothing, so there is no heat map");
    const Dimension& x = plot.x.empty() ? *first : find_dimension(points, plot.x);
    const Dimension* y = plot.y.empty() ? (second == &x ? first : second) : &find_dimension(points, plot.y);
    if (y == &x) throw UserError("a heat map needs two axes, but both are '" + x.name + "'");
    const MetricId id = find_metric(plot.value);
    const Metric& metric = sweep_metrics[id];
    const auto scenario =
        plot.scenario.empty() ? std::nullopt : std::optional(find_scenario(points, plot.scenario));
    const HeatMap map = heat_map(points, x, y, id, scenario);

    double low = INFINITY, high = -INFINITY;
    for (const auto& row : map.rows)
        if (row) {
            low = std::min(low, points.figure(*row, id) * metric.scale);
            high = std::max(high, points.figure(*row, id) * metric.scale);
        }
    if (low > high) throw UserError("no point of the heat map has a value of '" + plot.value + "'");
    const bool few = map.width() <= 24;
    std::string cells, light, dark;  // texts are light on dark cells
    for (std::size_t yi = 0; yi < map.height(); ++yi)
        for (std::size_t xi = 0; xi < map.width(); ++xi) {
            const auto row = map.at(xi, yi);
            if (!row) continue;
            const double value = points.figure(*row, id) * metric.scale;
            const double px = static_cast<double>(xi), py = static_cast<double>(yi);
            cells += numbers({px, py, value}) + "\n";
            ((value - low) / (high - low) < 0.55 ? light : dark) +=
                numbers({px, py}) + data_text(figure(value)) + "\n";
        }
    Blocks blocks;
    std::vector<std::string> layers{
        blocks.add(cells) + " using 1:2:(0.5):(0.5):3 with boxxyerror fc palette fs solid noborder notitle"};
    for (const auto& [texts, colour] : {std::pair(&light, "#FFFFFF"), std::pair(&dark, "#000000")})
        if (few && !texts->empty())
            layers.push_back(blocks.add(*texts) + " using 1:2:3 with labels tc rgb '" + colour +
                             "' font ',12' notitle");
    const std::vector<std::string> rows = y == nullptr ? std::vector<std::string>{"all"} : y->values;
    const int cell = few ? 62 : 18, columns = static_cast<int>(map.width());
    const bool turned = longest(x.values) > cell;
    GnuplotScript script;
    script.width = std::max(560, longest(rows) + cell * columns + 240);
    script.height =
        150 + std::max(150, 30 * static_cast<int>(rows.size())) + (turned ? longest(x.values) * 3 / 4 : 0);
    const std::string of = scenario ? points.scenarios[*scenario] : "best over all else";
    script.text = blocks.text() + heading(points, std::string(metric.label) + ", " + of) +
                  "unset key\nset palette defined (0 '#00224e', 1 '#34456c', 2 '#666970', 3 '#948e77', 4 "
                  "'#c4b66b', 5 '#fee838')\n" +
                  label('x', x.name) + (y == nullptr ? "" : label('y', y->name)) + "set cblabel " +
                  gnuplot_quoted(axis_label(metric)) + "\n" +
                  tics('x', x.values, turned ? " rotate by -40" : "") + tics('y', rows) +
                  "set xrange [-0.5:" + std::to_string(columns) + "-0.5]\nset yrange [" +
                  std::to_string(rows.size()) + "-0.5:-0.5]\n" + plot_of(layers);
    return script;
}

GnuplotScript draw_pareto(const SweepPoints& points, const SweepPlot& plot) {
    const std::uint32_t scenario = plot.scenario.empty() ? 0 : find_scenario(points, plot.scenario);
    const MetricId cost = find_metric(plot.against);
    if (cost != column::comm_cus && cost != column::staging)
        throw UserError("no Pareto front against '" + plot.against + "' (allowed: comm_cus, staging_bytes)");
    const double scale = sweep_metrics[cost].scale;
    const Dimension* schedule = points.dimension("schedule");
    std::map<std::uint32_t, std::string> by_schedule;
    double low = INFINITY, high = 0, most = 0;
    for (std::size_t row = 0; row < points.rows(); ++row) {
        if (points.scenario[row] != scenario) continue;
        const double x = points.figure(row, cost) * scale, y = points.figure(row, column::makespan);
        by_schedule[schedule == nullptr ? 0 : schedule->at[row]] += numbers({x, y}) + "\n";
        low = std::min(low, y);
        high = std::max(high, y);
        most = std::max(most, x);
    }
    const std::vector<std::size_t> front = pareto_front(points, scenario, cost);
    std::string steps;
    for (std::size_t i = 0; i < front.size(); ++i) {
        const double x = points.figure(front[i], cost) * scale;
        if (i > 0) steps += numbers({x, points.figure(front[i - 1], column::makespan)}) + "\n";
        steps += numbers({x, points.figure(front[i], column::makespan)}) + "\n";
    }
    const double right = most > 0 ? 1.05 * most : 1;
    steps += numbers({right, points.figure(front.back(), column::makespan)}) + "\n";
    Blocks blocks;
    std::vector<std::string> layers{
        blocks.add(steps) + " using 1:2 with lines lw 1.5 dt 2 lc rgb '#000000' title 'Pareto front'"};
    constexpr std::array markers{7, 5, 9, 13};  // filled circle, square, triangle, diamond
    std::size_t number = 0;
    for (const auto& [id, lines] : by_schedule) {
        layers.push_back(blocks.add(lines) + " using 1:2 with points pt " +
                         std::to_string(markers[number / 8 % markers.size()]) + " ps 1.1 lc rgb '" +
                         colour(number) + "' title " +
                         gnuplot_quoted(schedule == nullptr ? "points" : schedule->values[id]));
        ++number;
    }
    GnuplotScript script{900, std::max(480, 120 + line_height * static_cast<int>(layers.size())), ""};
    const bool logarithmic = high > 3 * low;
    script.text = blocks.text() + heading(points, points.scenarios[scenario]) +
                  "set grid lc rgb '#E6E6E6' lw 1\nset key outside right top Left reverse samplen 2\n" +
                  label('x', axis_label(sweep_metrics[cost])) +
                  label('y', axis_label(sweep_metrics[column::makespan])) + linear_tics('x', right) +
                  (logarithmic ? "set logscale y\n" + log_tics('y', low, high) : "") +
                  "set format y '%.0f'\nset xrange [" + numbers({-0.03 * right}) + ":" + numbers({right}) +
                  "]\nset yrange [" + numbers({low / 1.06}) + ":" + numbers({high * 1.06}) + "]\n" +
                  plot_of(layers);
    return script;
}

/// Bars of one part of the makespans: positive ones after another to the right, negative ones to the left.
class Stack {
public:
    explicit Stack(std::size_t bars) : up_(bars), down_(bars) {}

    /// "from to y" of a bar's next part.
    std::string add(std::size_t bar, double value) {
        double& end = value > 0 ? up_[bar] : down_[bar];
        const double before = end;
        end += value;
        return numbers({std::min(before, end), std::max(before, end), static_cast<double>(bar)}) + "\n";
    }
    double end(std::size_t bar) const { return up_[bar]; }
    double most() const { return *std::max_element(up_.begin(), up_.end()); }
    double least() const { return *std::min_element(down_.begin(), down_.end()); }

private:
    std::vector<double> up_, down_;
};

GnuplotScript draw_losses(const SweepPoints& points, const SweepPlot& plot) {
    const std::uint32_t scenario = plot.scenario.empty() ? 0 : find_scenario(points, plot.scenario);
    const std::vector<std::size_t> rows = best_by_schedule(points, scenario);
    const Dimension* schedule = points.dimension("schedule");
    Blocks blocks;
    Stack stack(rows.size());
    std::vector<std::string> layers, names;
    for (std::size_t part = column::first_loss - 1; part <= column::last_loss;
         ++part) {  // the ideal, then the losses
        std::string bars;
        for (std::size_t i = 0; i < rows.size(); ++i) bars += stack.add(i, points.metrics[part][rows[i]]);
        layers.push_back(blocks.add(bars) +
                         " using 1:3:1:2:($3-0.36):($3+0.36) with boxxyerror fs solid noborder fc rgb '" +
                         (part == column::ideal ? "#A7B0BA" : colour(part - column::first_loss)) +
                         "' title " + gnuplot_quoted(sweep_metrics[part].label));
    }
    std::string texts;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        names.push_back(schedule == nullptr ? choice_of(points, rows[i]) : schedule->value(rows[i]));
        texts += numbers({stack.end(i), static_cast<double>(i)}) +
                 data_text(" " + figure(points.figure(rows[i], column::makespan)) + " us, " +
                           fixed(points.figure(rows[i], column::speedup), 2) + " x") +
                 "\n";
    }
    layers.push_back(blocks.add(texts) + " using 1:2:3 with labels left font ',13' notitle");
    GnuplotScript script{1150, 130 + 28 * static_cast<int>(rows.size()), ""};
    script.text = blocks.text() + heading(points, points.scenarios[scenario] + ", best of each schedule") +
                  "set grid x lc rgb '#E6E6E6' lw 1\nset key outside right top Left reverse samplen 1\n" +
                  label('x', "ideal + losses = makespan [us]") + tics('y', names) +
                  linear_tics('x', stack.most()) + "set format x '%.0f'\nset xrange [" +
                  numbers({std::min(0.0, 1.02 * stack.least())}) + ":" + numbers({1.25 * stack.most()}) +
                  "]\nset yrange [" + std::to_string(rows.size()) + "-0.4:-0.6]\n" + plot_of(layers);
    return script;
}

GnuplotScript draw_speedups(const SweepPoints& points) {
    const std::vector<ScenarioBest> all = best_by_scenario(points);
    const Dimension* schedule = points.dimension("schedule");
    std::map<std::uint32_t, std::string> by_schedule;
    std::string ideals;
    for (const ScenarioBest& one : all) {
        const double x = static_cast<double>(one.scenario);
        by_schedule[schedule == nullptr ? 0 : schedule->at[one.best]] +=
            numbers({x, points.figure(one.best, column::speedup)}) + "\n";
        ideals +=
            numbers({x, points.figure(one.best, column::serial) / points.figure(one.best, column::ideal)}) +
            "\n";
    }
    Blocks blocks;
    std::vector<std::string> layers;
    for (const auto& [id, lines] : by_schedule)
        layers.push_back(blocks.add(lines) + " using 1:2 with boxes fs solid noborder fc rgb '" +
                         colour(layers.size()) + "' title " +
                         gnuplot_quoted(schedule == nullptr ? "best" : schedule->values[id]));
    layers.push_back(blocks.add(ideals) +
                     " using 1:2 with points pt 2 ps 0.9 lw 1.5 lc rgb '#000000' title 'if ideal'");
    layers.push_back("1 with lines lw 1 dt 3 lc rgb '#555555' title 'serial'");
    const int count = static_cast<int>(all.size());
    const bool named = count <= most_labels;
    GnuplotScript script{std::clamp(320 + 44 * count, 760, 2000), 460, ""};
    script.height += named ? longest(points.scenarios) * 2 / 3 : 0;
    script.text = blocks.text() + heading(points, "best schedule of each scenario") +
                  "set grid y lc rgb '#E6E6E6' lw 1\nset key outside right top Left reverse samplen 2\n" +
                  "set boxwidth 0.7\n" + label('y', axis_label(sweep_metrics[column::speedup])) +
                  (named ? tics('x', points.scenarios, " rotate by -40")
                         : label('x', "scenario, in the order of the sweep")) +
                  "set xrange [-0.6:" + std::to_string(count) + "-0.4]\nset yrange [0:*]\n" + plot_of(layers);
    return script;
}

}  // namespace

GnuplotScript to_gnuplot(const SweepPoints& points, const SweepPlot& plot) {
    switch (plot.kind) {
        case SweepPlotKind::heat_map:
            return draw_heat_map(points, plot);
        case SweepPlotKind::pareto:
            return draw_pareto(points, plot);
        case SweepPlotKind::losses:
            return draw_losses(points, plot);
        case SweepPlotKind::speedup:
            break;
    }
    return draw_speedups(points);
}

}  // namespace overlap
