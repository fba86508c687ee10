#pragma once

#include <optional>

#include "sim/report/sweep/sweep_points.hpp"

namespace overlap {

/// What decides between two points of a scenario: the part of makespan = ideal + losses that the slower one
/// has most more of.
struct Decision {
    std::string part;  ///< "contention loss", or "ideal" where transfers differ (another agent)
    double more_us = 0;
};

/// The fastest points of a scenario.
struct ScenarioBest {
    std::uint32_t scenario = 0;
    std::size_t points = 0;
    std::size_t best = 0;                  ///< row
    std::optional<std::size_t> runner_up;  ///< row: the best with another schedule
    std::optional<Decision> decided_by;    ///< against the runner-up; none: as fast
    std::string largest_loss;              ///< of the best; empty where it loses nothing
};
/// In the order of the scenarios.
std::vector<ScenarioBest> best_by_scenario(const SweepPoints& points);

/// The best row of each schedule in a scenario, the fastest first.
std::vector<std::size_t> best_by_schedule(const SweepPoints& points, std::uint32_t scenario);

/// Rows of a scenario for which none takes less time and costs no more; from the cheapest on. Of equal ones
/// the first.
std::vector<std::size_t> pareto_front(const SweepPoints& points, std::uint32_t scenario, MetricId cost);

/// The best figure over all else for each pair of values of two dimensions.
struct HeatMap {
    const Dimension* x = nullptr;
    const Dimension* y = nullptr;  ///< null: one row
    MetricId metric = column::makespan;
    std::vector<std::optional<std::size_t>> rows;  ///< by y value, then x value: where the best is

    std::size_t width() const { return x->values.size(); }
    std::size_t height() const { return y == nullptr ? 1 : y->values.size(); }
    std::optional<std::size_t> at(std::size_t xi, std::size_t yi) const { return rows[yi * width() + xi]; }
};
/// Of one scenario, or of all.
HeatMap heat_map(const SweepPoints& points, const Dimension& x, const Dimension* y, MetricId metric,
                 std::optional<std::uint32_t> scenario = std::nullopt);
/// Two dimensions to look at first: those that axes name, of different axes where there are two.
std::pair<const Dimension*, const Dimension*> first_dimensions(const SweepPoints& points);

/// "hetero_fused_1d, chunks 4, agent dma": what was chosen at a row, of what axes vary.
std::string choice_of(const SweepPoints& points, std::size_t row);
/// Throws UserError with the nearest name.
const Dimension& find_dimension(const SweepPoints& points, const std::string& name);
std::uint32_t find_scenario(const SweepPoints& points, const std::string& name);

}  // namespace overlap
