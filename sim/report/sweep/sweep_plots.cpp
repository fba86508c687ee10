#include "sim/report/sweep/sweep_report.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/core/ranges.hpp"
#include "sim/report/gnuplot_parts.hpp"
#include "sim/report/sweep/sweep_analysis.hpp"
#include "sim/report/text_format.hpp"

namespace overlap {
namespace {

using namespace gnuplot;

constexpr std::size_t most_names = 300;  // a picture with more of them would be too tall
constexpr int letters_of_time = 22;      // "12345678 us, 12.34 x"

/// Four significant digits, as on the page.
std::string figure(double value) {
    return value == 0 ? "0" : std::abs(value) >= 1000 ? fixed(value, 0) : significant(value);
}

/// Sets the title, centred over the plot, and reserves its lines. `beside`: pixels of the legend and
/// other content to the right.
std::string heading(const SweepPoints& points, const std::string& what, GnuplotScript& script, int beside) {
    const std::string text = "Sweep " + points.info.name + ": " + what;
    const int width = script.width - beside;
    script.height += line_height * (line_count(text, width) - 1);
    return "set title " + broken(text, width) + "\nset border 3 lc rgb '#555555'\nset tics nomirror out\n";
}

/// Legend at the right of the plot, one entry a line.
std::string legend(GnuplotScript& script, std::size_t lines) {
    script.height = std::max(script.height, 100 + line_height * static_cast<int>(lines));
    return "set key outside right top Left reverse samplen 2\n";
}

GnuplotScript draw_heat_map(const SweepPoints& points, const SweepPlot& plot) {
    const auto [first, second] = first_dimensions(points);
    if (first == nullptr) throw UserError("the sweep varies nothing, so there is no heat map");
    const Dimension& x = plot.x.empty() ? *first : find_dimension(points, plot.x);
    const Dimension* y = plot.y.empty() ? (second == &x ? first : second) : &find_dimension(points, plot.y);
    if (y == &x) throw UserError("a heat map needs two axes, but both are '" + x.name + "'");
    const MetricId id = find_metric(plot.value);
    const Metric& metric = sweep_metrics[id];
    const std::uint32_t scenario = find_scenario(points, plot.scenario);
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
    DataBlocks blocks;
    std::vector<std::string> layers{
        blocks.add(cells) + " using 1:2:(0.5):(0.5):3 with boxxyerror fc palette fs solid noborder notitle"};
    for (const auto& [texts, colour] : {std::pair(&light, "#FFFFFF"), std::pair(&dark, "#000000")})
        if (few && !texts->empty())
            layers.push_back(blocks.add(*texts) + " using 1:2:3 with labels tc rgb '" + colour +
                             "' font ',12' notitle");
    const std::vector<std::string> rows = y == nullptr ? std::vector<std::string>{"all"} : y->shown();
    const std::vector<std::string> columns = x.shown();
    const std::string y_title = y == nullptr ? "" : y->label, value_title = axis_label(metric);
    const int cell = few ? 62 : 18, names = width_of(columns);
    const int map_height =
        std::max({30 * static_cast<int>(rows.size()), width_of({y_title}), width_of({value_title})});
    const bool turned = names > cell;
    GnuplotScript script;
    script.width = std::max(560, width_of(rows) + cell * static_cast<int>(columns.size()) + 300);
    script.height = 150 + map_height + (turned ? names * 3 / 4 : 0);
    const std::string of = shared_by(map);
    script.text =
        blocks.text() +
        heading(points, "best " + std::string(metric.label) + (of.empty() ? "" : ", " + of), script, 160) +
        "unset key\nset palette defined (0 '#00224e', 1 '#34456c', 2 '#666970', 3 '#948e77', 4 "
        "'#c4b66b', 5 '#fee838')\n" +
        axis_title('x', x.label) + axis_title('y', y_title) + "set cblabel " + gnuplot_quoted(value_title) +
        " offset 1,0\n" + (high > low ? number_tics("cb", low, high, map_height) : "") +
        named_tics('x', columns, turned ? " rotate by -40" : "") + named_tics('y', rows) +
        "set xrange [-0.5:" + std::to_string(columns.size()) + "-0.5]\nset yrange [" +
        std::to_string(rows.size()) + "-0.5:-0.5]\n" + plot_of(layers);
    return script;
}

GnuplotScript draw_pareto(const SweepPoints& points, const SweepPlot& plot) {
    const std::uint32_t scenario = find_scenario(points, plot.scenario);
    const MetricId cost = find_metric(plot.against);
    if (cost != column::comm_cus && cost != column::staging)
        throw UserError("no Pareto front against '" + plot.against + "' (allowed: comm_cus, staging_bytes)");
    const double scale = sweep_metrics[cost].scale;
    const Dimension* schedule = points.dimension("schedule");
    std::map<std::uint32_t, std::string> by_schedule;
    double low = INFINITY, high = 0;
    std::map<double, std::string> costs;  // with their names
    for (std::size_t row = 0; row < points.rows(); ++row)
        if (points.scenario[row] == scenario) {
            const double x = points.figure(row, cost) * scale;
            costs[x] = figure(x);
        }
    // One or two values make no axis: they get a place each.
    const bool few = costs.size() <= 2;
    const double most = few ? static_cast<double>(costs.size()) - 0.5 : costs.rbegin()->first;
    const auto place = [&](std::size_t row) {
        const double x = points.figure(row, cost) * scale;
        return few && x > costs.begin()->first ? 1.0 : few ? 0.0 : x;
    };
    for (std::size_t row = 0; row < points.rows(); ++row) {
        if (points.scenario[row] != scenario) continue;
        const double x = place(row), y = points.figure(row, column::makespan);
        by_schedule[schedule == nullptr ? 0 : schedule->at[row]] += numbers({x, y}) + "\n";
        low = std::min(low, y);
        high = std::max(high, y);
    }
    const std::vector<std::size_t> front = pareto_front(points, scenario, cost);
    std::string steps;
    for (std::size_t i = 0; i < front.size(); ++i) {
        const double x = place(front[i]);
        if (i > 0) steps += numbers({x, points.figure(front[i - 1], column::makespan)}) + "\n";
        steps += numbers({x, points.figure(front[i], column::makespan)}) + "\n";
    }
    const double right = few ? most : most > 0 ? 1.05 * most : 1, left = few ? -0.5 : -0.03 * right;
    steps += numbers({right, points.figure(front.back(), column::makespan)}) + "\n";
    DataBlocks blocks;
    std::vector<std::string> layers{
        blocks.add(steps) + " using 1:2 with lines lw 1.5 dt 2 lc rgb '#000000' title 'Pareto front'"};
    for (const auto& [id, lines] : by_schedule)
        layers.push_back(blocks.add(lines) + " using 1:2 with points" + points_style(look_of(id)) +
                         " title " + gnuplot_quoted(schedule == nullptr ? "points" : schedule->values[id]));
    GnuplotScript script{900, 480, ""};
    const bool logarithmic = low > 0 && high > 3 * low;
    const double from = low / 1.06, to = high * 1.06;
    const std::string key = legend(script, layers.size());
    script.text = blocks.text() + heading(points, points.scenarios[scenario], script, 300) +
                  "set grid lc rgb '#E6E6E6' lw 1\n" + key +
                  axis_title('x', axis_label(sweep_metrics[cost])) +
                  axis_title('y', axis_label(sweep_metrics[column::makespan])) +
                  (few ? named_tics('x', mapped(costs, &decltype(costs)::value_type::second))
                       : number_tics("x", 0, right, 500)) +
                  (logarithmic ? "set logscale y\n" : "") + number_tics("y", from, to, 340, logarithmic) +
                  "set xrange [" + numbers({left}) + ":" + numbers({right}) + "]\nset yrange [" +
                  numbers({from}) + ":" + numbers({to}) + "]\n" + plot_of(layers);
    return script;
}

/// Bars of one part of the makespans: positive bars go to the right, negative ones to the left, each
/// from the end of the last.
class Stack {
public:
    explicit Stack(std::size_t bars) : up_(bars), down_(bars) {}

    /// "from to y" of the next part of a bar.
    std::string add(std::size_t bar, double value) {
        double& end = value > 0 ? up_[bar] : down_[bar];
        const double before = end;
        end += value;
        return numbers({std::min(before, end), std::max(before, end), static_cast<double>(bar)}) + "\n";
    }
    double end(std::size_t bar) const { return up_[bar]; }
    double most() const { return *std::ranges::max_element(up_); }
    double least() const { return *std::ranges::min_element(down_); }

private:
    std::vector<double> up_, down_;
};

GnuplotScript draw_losses(const SweepPoints& points, const SweepPlot& plot) {
    const std::uint32_t scenario = find_scenario(points, plot.scenario);
    const std::vector<std::size_t> rows = best_by_schedule(points, scenario);
    const Dimension* schedule = points.dimension("schedule");
    DataBlocks blocks;
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
    const int bars = 620;
    GnuplotScript script{bars + width_of(names) + letters_of_time * letter + 240,
                         130 + 28 * static_cast<int>(rows.size()), ""};
    const std::string key = legend(script, layers.size());
    // Room for the texts behind the bars.
    const double right = stack.most() * (bars + letters_of_time * letter) / bars;
    script.text =
        blocks.text() + heading(points, points.scenarios[scenario] + ", best of each schedule", script, 300) +
        "set grid x lc rgb '#E6E6E6' lw 1\n" + key + axis_title('x', "ideal + losses = makespan [us]") +
        named_tics('y', names) + number_tics("x", std::min(0.0, stack.least()), stack.most(), bars) +
        "set xrange [" + numbers({std::min(0.0, 1.02 * stack.least())}) + ":" + numbers({right}) +
        "]\nset yrange [" + std::to_string(rows.size()) + "-0.4:-0.6]\n" + plot_of(layers);
    return script;
}

/// A bar for each scenario, from top to bottom.
GnuplotScript draw_speedups(const SweepPoints& points, const SweepPlot&) {
    const std::vector<ScenarioBest> all = best_by_scenario(points);
    const Dimension* schedule = points.dimension("schedule");
    std::map<std::uint32_t, std::string> by_schedule;
    std::string ideals;
    double most = 1;
    for (const ScenarioBest& one : all) {
        const double y = one.scenario, speedup = points.figure(one.best, column::speedup);
        const double ideal = points.figure(one.best, column::serial) / points.figure(one.best, column::ideal);
        by_schedule[schedule == nullptr ? 0 : schedule->at[one.best]] += numbers({speedup, y}) + "\n";
        ideals += numbers({ideal, y}) + "\n";
        most = std::max({most, speedup, ideal});
    }
    DataBlocks blocks;
    std::vector<std::string> layers;
    for (const auto& [id, lines] : by_schedule)
        layers.push_back(blocks.add(lines) + " using 1:2:(0):1:($2-0.36):($2+0.36) with boxxyerror" +
                         fill_style(look_of(id)) + " title " +
                         gnuplot_quoted(schedule == nullptr ? "best" : schedule->values[id]));
    layers.push_back(blocks.add(ideals) +
                     " using 1:2 with points pt 2 ps 0.9 lw 1.5 lc rgb '#000000' title 'if ideal'");
    layers.push_back(
        blocks.add(numbers({1, -0.6}) + "\n" + numbers({1, static_cast<double>(all.size()) - 0.4}) + "\n") +
        " using 1:2 with lines lw 1 dt 3 lc rgb '#555555' title 'serial'");
    const int count = static_cast<int>(all.size()), bars = 620;
    const bool named = all.size() <= most_names;
    const std::vector<std::string> names = named ? points.scenarios : std::vector<std::string>{};
    GnuplotScript script{bars + width_of(names) + 380, 200 + (named ? 26 : 3) * count, ""};
    const std::string key = legend(script, layers.size());
    script.text = blocks.text() + heading(points, "best schedule of each scenario", script, 300) +
                  "set grid x lc rgb '#E6E6E6' lw 1\n" + key +
                  axis_title('x', axis_label(sweep_metrics[column::speedup])) +
                  number_tics("x", 0, most, bars) +
                  (named ? named_tics('y', names)
                         : axis_title('y', "scenario, in the order of the page's table") + "unset ytics\n") +
                  "set xrange [0:" + numbers({1.05 * most}) + "]\nset yrange [" + std::to_string(count) +
                  "-0.4:-0.6]\n" + plot_of(layers);
    return script;
}

}  // namespace

GnuplotScript to_gnuplot(const SweepPoints& points, const SweepPlot& plot) {
    constexpr std::array draw{draw_heat_map, draw_pareto, draw_losses, draw_speedups};
    return draw.at(static_cast<std::size_t>(plot.kind))(points, plot);
}

}  // namespace overlap
