#include "sim/calibrate/fits/fit_gemm.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <map>
#include <utility>

#include "sim/calibrate/fits/gemm_contenders.hpp"
#include "sim/calibrate/fits/robust_fit.hpp"

namespace overlap {
namespace {

using Family = std::pair<std::int64_t, std::int64_t>;
Family family_of(const GemmShape& shape) {
    return {shape.n, shape.k};
}

constexpr double rows_per_family = 60;  // further rows of a family add little information
constexpr double most_rows = 1600;      // per fit, spread evenly over the families; limits the run time
constexpr Seconds short_kernel = microseconds(20);
constexpr double short_weight = 0.35;  // weight of rows below `short_kernel`
constexpr double campaign_spread = 1.2;

/// False for an optional effect that the prior leaves out: it is no parameter of the fit.
bool is_fitted(const Field<GemmParameters>& field, const GemmParameters& form) {
    return field.required || field.get(form) != 0;
}

/// The parameters as Ceres sees them: logarithms of the fields, the efficiencies, the rates of campaigns. A
/// field that is 0 has no logarithm: nothing depends on its entry, so the prior fixes it.
std::vector<double> to_logs(const GemmParameters& parameters, std::size_t campaigns) {
    std::vector<double> logs;
    for (const Field<GemmParameters>& field : GemmParameters::fields()) {
        if (!is_fitted(field, parameters)) continue;
        const double value = field.get(parameters);
        logs.push_back(value == 0 ? 0 : std::log(value));
    }
    for (const GemmTile& tile : parameters.tiles) logs.push_back(std::log(tile.efficiency));
    logs.resize(logs.size() + campaigns, 0.0);
    return logs;
}

struct Point {
    GemmParameters parameters;
    std::vector<double> campaign_rates;
};
Point from_logs(const GemmParameters& form, const std::vector<double>& logs) {
    Point point{form, {}};
    auto log = logs.begin();
    for (const Field<GemmParameters>& field : GemmParameters::fields()) {
        if (!is_fitted(field, form)) continue;
        if (field.get(form) != 0) field.set(point.parameters, std::exp(*log));
        ++log;
    }
    for (GemmTile& tile : point.parameters.tiles) tile.efficiency = std::exp(*log++);
    while (log != logs.end()) point.campaign_rates.push_back(std::exp(*log++));
    return point;
}

std::size_t count_campaigns(std::span<const GemmMeasurement> rows) {
    int last = 0;
    for (const GemmMeasurement& row : rows) last = std::max(last, row.campaign);
    return static_cast<std::size_t>(last);
}

std::vector<double> log_spreads(const GemmPrior& prior, std::size_t campaigns) {
    std::vector<double> spreads;
    const auto fields = GemmParameters::fields();
    for (std::size_t i = 0; i < fields.size(); ++i)
        if (is_fitted(fields[i], prior.start)) spreads.push_back(std::log(prior.field_spread.at(i)));
    std::int64_t largest = 0;
    for (const GemmTile& tile : prior.start.tiles) largest = std::max(largest, tile.m * tile.n);
    // Only products of rate and efficiency are determined: the largest tile stays near 1 to separate them.
    for (const GemmTile& tile : prior.start.tiles) {
        const bool small = prior.small_tile_spread > 0 && 2 * tile.m * tile.n < largest;
        spreads.push_back(std::log(tile.m * tile.n == largest ? 1.05
                                   : small                    ? prior.small_tile_spread
                                                              : prior.tile_spread));
    }
    spreads.resize(spreads.size() + campaigns, std::log(campaign_spread));
    return spreads;
}

/// An equal number of rows of every family, evenly spaced in M: `most_rows` in all, but at least `rows_of_family` of
/// each.
std::vector<GemmMeasurement> thinned(std::span<const GemmMeasurement> rows, int rows_of_family) {
    std::map<Family, std::vector<GemmMeasurement>> families;
    for (const GemmMeasurement& row : rows) families[family_of(row.shape)].push_back(row);
    const auto share = static_cast<std::size_t>(
        std::max<double>(rows_of_family, std::ceil(most_rows / static_cast<double>(families.size()))));
    std::vector<GemmMeasurement> taken;
    for (const auto& [family, members] : families) {
        const std::size_t count = std::min(share, members.size());
        for (std::size_t i = 0; i < count; ++i)
            taken.push_back(members[(2 * i + 1) * members.size() / (2 * count)]);
    }
    return taken;
}

std::vector<double> weights_of(std::span<const GemmMeasurement> rows) {
    std::map<Family, double> count;
    for (const GemmMeasurement& row : rows) count[family_of(row.shape)] += 1;
    std::vector<double> weights;
    for (const GemmMeasurement& row : rows) {
        const double family = std::sqrt(std::min(1.0, rows_per_family / count[family_of(row.shape)]));
        weights.push_back(row.weight * family * (row.time < short_kernel ? short_weight : 1.0));
    }
    return weights;
}

/// Makes the best efficiency 1 and the peak rate that tile's rate; predictions stay the same.
void normalise(GemmParameters& parameters) {
    double best = 0;
    for (const GemmTile& tile : parameters.tiles) best = std::max(best, tile.efficiency);
    parameters.peak_rate = parameters.peak_rate * best;
    for (GemmTile& tile : parameters.tiles) tile.efficiency /= best;
}

/// The parameters of each campaign, the main one first.
std::vector<GemmParameters> constants_of(const GemmParameters& parameters,
                                         std::span<const double> campaign_rates) {
    std::vector<GemmParameters> all(campaign_rates.size() + 1, parameters);
    for (std::size_t i = 0; i < campaign_rates.size(); ++i)
        all[i + 1].peak_rate = all[i + 1].peak_rate * campaign_rates[i];
    return all;
}

/// Predicted by the parameters of the row's campaign.
Seconds time_of(const GemmMeasurement& row, const GemmParameters& parameters) {
    const GemmEstimate one =
        estimate_gemm(row.shape, parameters, row.busy, {row.units, CuMask::low_bits, false, row.warm});
    return one.total() + row.gap;
}

}  // namespace

Seconds fitted_time(const GemmMeasurement& row, const GemmParameters& parameters,
                    std::span<const double> campaign_rates) {
    return time_of(row, constants_of(parameters, campaign_rates).at(static_cast<std::size_t>(row.campaign)));
}

GemmFit fit_gemm(std::span<const GemmMeasurement> rows, const GemmPrior& prior) {
    const std::vector<GemmMeasurement> taken = thinned(rows, prior.rows_of_family);
    RobustProblem problem;
    problem.start = to_logs(prior.start, count_campaigns(taken));
    problem.spread = log_spreads(prior, count_campaigns(taken));
    std::vector<Range> ranges;
    for (const Field<GemmParameters>& field : GemmParameters::fields())
        if (is_fitted(field, prior.start)) ranges.push_back(field.range);
    for (std::size_t j = 0; j < problem.start.size(); ++j) {
        double low = problem.start[j] - 5 * problem.spread[j],
               high = problem.start[j] + 5 * problem.spread[j];
        if (j < ranges.size()) {
            const Range range = ranges[j];
            if (range.low > 0) low = std::max(low, std::log(range.low));
            high = std::min(high, std::log(range.high));
        }
        problem.low.push_back(low);
        problem.high.push_back(high);
    }
    problem.weights = weights_of(taken);
    const auto constants_at = [&](const std::vector<double>& logs) {
        const Point point = from_logs(prior.start, logs);
        return constants_of(point.parameters, point.campaign_rates);
    };
    const auto campaign = [&](std::size_t row) { return static_cast<std::size_t>(taken[row].campaign); };
    problem.errors = [&](const std::vector<double>& logs, double* errors) {
        const auto constants = constants_at(logs);
        for (std::size_t i = 0; i < taken.size(); ++i)
            errors[i] = std::log(time_of(taken[i], constants[campaign(i)]) / taken[i].time);
    };
    problem.errors_near = [&](const std::vector<double>& at) -> RobustProblem::Errors {
        const auto here = constants_at(at);
        std::vector<GemmContenders> tiles;
        for (std::size_t i = 0; i < taken.size(); ++i)
            tiles.emplace_back(taken[i], here[campaign(i)], problem.step);
        return [&, tiles](const std::vector<double>& logs, double* errors) {
            const auto constants = constants_at(logs);
            for (std::size_t i = 0; i < taken.size(); ++i)
                errors[i] =
                    std::log(time_of(taken[i], tiles[i].among(constants[campaign(i)])) / taken[i].time);
        };
    };
    const RobustFit known = robust_fit(problem);

    const Point found = from_logs(prior.start, known.at);
    GemmFit fit;
    fit.parameters = found.parameters;
    fit.campaign_rates = found.campaign_rates;
    normalise(fit.parameters);
    std::size_t j = 0;
    const auto fitted = [&](double value) {
        const FittedValue made{value, value * known.standard_error[j], known.prior_share[j],
                               known.residual[j]};
        ++j;
        return made;
    };
    for (const Field<GemmParameters>& field : GemmParameters::fields()) {
        const double value = field.get(fit.parameters);
        fit.fields.push_back(is_fitted(field, prior.start) ? fitted(value) : FittedValue{value, 0, 1, 0});
    }
    for (const GemmTile& tile : fit.parameters.tiles) fit.tiles.push_back(fitted(tile.efficiency));
    for (const double rate : fit.campaign_rates)
        fit.campaign_errors.push_back(rate * known.standard_error[j++]);
    return fit;
}

}  // namespace overlap
