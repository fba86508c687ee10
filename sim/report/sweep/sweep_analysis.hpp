#pragma once

#include <optional>

#include "sim/report/sweep/sweep_points.hpp"

namespace overlap {

/// What decides between two points of a scenario: the part of makespan = ideal + losses in which the slower
/// one exceeds the faster one most.
struct Decision {
    std::string part;  ///< "contention loss", or "ideal" if the transfers differ (another agent)
    double more_us = 0;
};

/// The fastest points of a scenario.
struct ScenarioBest {
    std::uint32_t scenario = 0;
    std::size_t points = 0;
    std::size_t best = 0;                  ///< row
    std::optional<std::size_t> runner_up;  ///< row: the best with another schedule
    std::optional<Decision> decided_by;    ///< compared with the runner-up; none: equal
    std::string largest_loss;              ///< of the best; empty if it has no loss
};
/// In the order of the scenarios.
std::vector<ScenarioBest> best_by_scenario(const SweepPoints& points);

/// The best row of each schedule in a scenario, the fastest first.
std::vector<std::size_t> best_by_schedule(const SweepPoints& points, std::uint32_t scenario);

/// Rows of a scenario that no other row beats in both time and cost, cheapest first. Of equal rows the first.
std::vector<std::size_t> pareto_front(const SweepPoints& points, std::uint32_t scenario, MetricId cost);

/// The best figure over all choices, for each pair of values of two dimensions, of one operator on one machine.
struct HeatMap {
    const Dimension* x = nullptr;
    const Dimension* y = nullptr;  ///< null: one row
    MetricId metric = column::makespan;
    std::vector<std::optional<std::size_t>> rows;  ///< by y value, then x value: row of the best
    std::vector<const Dimension*> fixed = {};      ///< those that have one value in all points of the map
    std::size_t like = 0;                          ///< a row with these values

    std::size_t width() const { return x->values.size(); }
    std::size_t height() const { return y == nullptr ? 1 : y->values.size(); }
    std::optional<std::size_t> at(std::size_t xi, std::size_t yi) const { return rows[yi * width() + xi]; }
};
/// What describes a scenario is that of `scenario`, but for x, y and dimensions that change with x or y (zipped axes).
HeatMap heat_map(const SweepPoints& points, const Dimension& x, const Dimension* y, MetricId metric,
                 std::uint32_t scenario);
/// "ficco_g2, bandwidth_GBps 2x": what all points of the map share; empty if nothing else is swept.
std::string shared_by(const HeatMap& map);
/// Two dimensions for a first look: named by axes, and of different axes if there are two.
std::pair<const Dimension*, const Dimension*> first_dimensions(const SweepPoints& points);

/// "hetero_fused_1d, chunks 4, agent dma": the choices at a row, among those that axes vary.
std::string choice_of(const SweepPoints& points, std::size_t row);
/// Throws UserError with the nearest name. The scenario without a name is the first.
const Dimension& find_dimension(const SweepPoints& points, const std::string& name);
std::uint32_t find_scenario(const SweepPoints& points, const std::string& name);

}  // namespace overlap
