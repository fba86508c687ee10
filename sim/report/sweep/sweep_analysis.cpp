#include "sim/report/sweep/sweep_analysis.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"

namespace overlap {
namespace {

constexpr double least_difference = 1e-6;  // makespans that differ by less count as equal

bool is_better(const Metric& metric, double a, double b) {
    return metric.better == Metric::Better::more ? a > b : a < b;
}

Decision decision(const SweepPoints& points, std::size_t best, std::size_t other) {
    Decision most{"ideal", points.figure(other, column::ideal) - points.figure(best, column::ideal)};
    for (std::size_t i = column::first_loss; i <= column::last_loss; ++i) {
        const double more = points.metrics[i][other] - points.metrics[i][best];
        if (more > most.more_us) most = {sweep_metrics[i].label, more};
    }
    return most;
}

std::string largest_loss(const SweepPoints& points, std::size_t row) {
    std::size_t largest = column::first_loss;
    for (std::size_t i = column::first_loss; i <= column::last_loss; ++i)
        if (points.metrics[i][row] > points.metrics[largest][row]) largest = i;
    return points.metrics[largest][row] > 0 ? sweep_metrics[largest].label : "";
}

std::string schedule_of(const SweepPoints& points, std::size_t row) {
    const Dimension* schedule = points.dimension("schedule");
    return schedule == nullptr ? "" : schedule->value(row);
}

/// Fastest first; of equal rows the first in the file comes first.
void sort_by_makespan(const SweepPoints& points, std::vector<std::size_t>& rows) {
    const auto key = [&](std::size_t row) { return std::pair(points.figure(row, column::makespan), row); };
    std::ranges::sort(rows, {}, key);
}

/// Whether each value of `leader` comes with one value of `dimension` only: zipped axes, or sizes of a workload.
bool follows(const SweepPoints& points, const Dimension& dimension, const Dimension& leader) {
    std::vector<std::optional<std::uint32_t>> value(leader.values.size());
    for (std::size_t row = 0; row < points.rows(); ++row) {
        std::optional<std::uint32_t>& known = value[leader.at[row]];
        if (known && *known != dimension.at[row]) return false;
        known = dimension.at[row];
    }
    return true;
}

}  // namespace

std::vector<ScenarioBest> best_by_scenario(const SweepPoints& points) {
    const Dimension* schedule = points.dimension("schedule");
    const std::size_t schedules = schedule == nullptr ? 1 : schedule->values.size();
    constexpr std::size_t nothing = SIZE_MAX;
    std::vector<std::size_t> fastest(points.scenarios.size() * schedules, nothing);
    std::vector<ScenarioBest> result(points.scenarios.size());
    for (std::size_t row = 0; row < points.rows(); ++row) {
        if (!points.ok(row)) continue;
        ++result[points.scenario[row]].points;
        std::size_t& at =
            fastest[points.scenario[row] * schedules + (schedule == nullptr ? 0 : schedule->at[row])];
        if (at == nothing || points.figure(row, column::makespan) < points.figure(at, column::makespan))
            at = row;
    }
    for (std::uint32_t id = 0; id < result.size(); ++id) {
        std::vector<std::size_t> rows;
        for (std::size_t i = 0; i < schedules; ++i)
            if (fastest[id * schedules + i] != nothing) rows.push_back(fastest[id * schedules + i]);
        sort_by_makespan(points, rows);
        ScenarioBest& one = result[id];
        one.scenario = id;
        one.best = rows[0];
        one.largest_loss = largest_loss(points, rows[0]);
        if (rows.size() < 2) continue;
        one.runner_up = rows[1];
        if (points.figure(rows[1], column::makespan) >
            points.figure(rows[0], column::makespan) * (1 + least_difference))
            one.decided_by = decision(points, rows[0], rows[1]);
    }
    return result;
}

std::vector<std::size_t> best_by_schedule(const SweepPoints& points, std::uint32_t scenario) {
    std::map<std::string, std::size_t> best;
    for (std::size_t row = 0; row < points.rows(); ++row) {
        if (points.scenario[row] != scenario) continue;
        const auto [found, is_new] = best.try_emplace(schedule_of(points, row), row);
        if (points.figure(row, column::makespan) < points.figure(found->second, column::makespan))
            found->second = row;
    }
    std::vector<std::size_t> rows;
    for (const auto& [schedule, row] : best) rows.push_back(row);
    sort_by_makespan(points, rows);
    return rows;
}

std::vector<std::size_t> pareto_front(const SweepPoints& points, std::uint32_t scenario, MetricId cost) {
    std::vector<std::size_t> rows;
    for (std::size_t row = 0; row < points.rows(); ++row)
        if (points.scenario[row] == scenario && !std::isnan(points.figure(row, cost))) rows.push_back(row);
    const auto key = [&](std::size_t row) {
        return std::tuple(points.figure(row, cost), points.figure(row, column::makespan), row);
    };
    std::ranges::sort(rows, {}, key);
    std::vector<std::size_t> front;
    for (const std::size_t row : rows)
        if (front.empty() ||
            points.figure(row, column::makespan) < points.figure(front.back(), column::makespan))
            front.push_back(row);
    return front;
}

HeatMap heat_map(const SweepPoints& points, const Dimension& x, const Dimension* y, MetricId metric,
                 std::uint32_t scenario) {
    HeatMap map{&x, y, metric, {}};
    map.rows.resize(map.width() * map.height());
    const auto found = std::ranges::find(points.scenario, scenario);
    map.like = static_cast<std::size_t>(found - points.scenario.begin());
    for (const Dimension& one : points.dimensions)
        if (!one.choice && !follows(points, one, x) && (y == nullptr || !follows(points, one, *y)))
            map.fixed.push_back(&one);
    const auto is_like = [&](std::size_t row) {
        return std::ranges::all_of(map.fixed,
                                   [&](const Dimension* one) { return one->at[row] == one->at[map.like]; });
    };
    for (std::size_t row = 0; row < points.rows(); ++row) {
        const double value = points.figure(row, metric);
        if (!points.ok(row) || std::isnan(value) || !is_like(row)) continue;
        auto& best = map.rows[(y == nullptr ? 0 : y->at[row]) * map.width() + x.at[row]];
        if (!best || is_better(sweep_metrics[metric], value, points.figure(*best, metric))) best = row;
    }
    return map;
}

std::string shared_by(const HeatMap& map) {
    std::string text;
    for (const Dimension* one : map.fixed) {
        if (!one->swept || one->value(map.like).empty()) continue;
        const bool speaks = one->label == "workload" || one->label == "topology";
        text += (text.empty() ? "" : ", ") + (speaks ? "" : one->label + " ") + one->value(map.like);
    }
    return text;
}

std::pair<const Dimension*, const Dimension*> first_dimensions(const SweepPoints& points) {
    std::vector<const Dimension*> found;
    const auto add = [&](const Dimension* dimension) {
        if (dimension != nullptr && !contains(found, dimension)) found.push_back(dimension);
    };
    const auto add_field = [&](const std::string& field) {
        const Dimension* whole = points.dimension(field);
        add(whole != nullptr ? whole : points.dimension(field.substr(field.rfind('.') + 1)));
    };
    for (const SweepInfo::Axis& axis : points.info.axes) add_field(axis.fields.front());
    for (const SweepInfo::Axis& axis : points.info.axes)
        for (const std::string& field : axis.fields) add_field(field);
    for (const Dimension& dimension : points.dimensions) add(&dimension);
    found.resize(std::max<std::size_t>(found.size(), 2));
    return {found[0], found[1]};
}

std::string choice_of(const SweepPoints& points, std::size_t row) {
    std::string text = schedule_of(points, row);
    for (const Dimension& dimension : points.dimensions) {
        if (!dimension.choice || !dimension.swept || dimension.name == "schedule" ||
            dimension.value(row).empty())
            continue;
        text += (text.empty() ? "" : ", ") + dimension.label + " " + dimension.value(row);
    }
    if (!text.empty()) return text;
    for (const auto& [name, value] : points.constants)
        if (name == "schedule") return value;
    return "point " + std::to_string(points.point[row]);
}

const Dimension& find_dimension(const SweepPoints& points, const std::string& name) {
    if (const Dimension* found = points.dimension(name)) return *found;
    for (const Dimension& one :
         points.dimensions)  // "params.chunks", of which a column has the last part, or the reverse
        if (one.name.ends_with("." + name) || name.ends_with("." + one.name)) return one;
    throw UserError("no axis " + in_quotes(name) + " in this sweep" +
                    suggestion(name, mapped(points.dimensions, &Dimension::name)));
}

std::uint32_t find_scenario(const SweepPoints& points, const std::string& name) {
    if (name.empty()) return 0;
    return static_cast<std::uint32_t>(
        known_place(name, points.scenarios, "no scenario " + in_quotes(name) + " in this sweep"));
}

}  // namespace overlap
