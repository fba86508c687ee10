#include "models/calibration/fit_gemm.hpp"

#include <ceres/ceres.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <map>
#include <utility>

namespace overlap {
namespace {

using Family = std::pair<std::int64_t, std::int64_t>;
Family family_of(const GemmShape& shape) {
    return {shape.n, shape.k};
}

constexpr double rows_per_family = 60;  // more rows of a family say little that is new
constexpr double most_rows = 1600;      // in one fit, spread evenly over the families: for speed
constexpr Seconds short_kernel = microseconds(20);
constexpr double loss_scale = 0.06;    // relative error from which rows count linearly, not squared
constexpr double short_weight = 0.35;  // of rows below `short_kernel`
constexpr double prior_weight = 0.15;  // a prior as strong as about (0.15 / 0.06)² = 6 rows
constexpr double campaign_spread = 1.2;
constexpr double log_step = 2e-3;  // for differences; wide enough to see across a change of tile

/// The parameters as Ceres sees them: logarithms of the fields, the efficiencies, the rates of campaigns. Of
/// a field that is 0 there is no logarithm: nothing depends on its place, so the prior holds it.
std::vector<double> to_logs(const GemmParameters& parameters, std::size_t campaigns) {
    std::vector<double> logs;
    for (const GemmField& field : gemm_fields()) {
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
    for (const GemmField& field : gemm_fields()) {
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
    for (const double spread : prior.field_spread) spreads.push_back(std::log(spread));
    std::int64_t largest = 0;
    for (const GemmTile& tile : prior.start.tiles) largest = std::max(largest, tile.m * tile.n);
    // Rate and efficiencies only count as products: holding the largest tile near 1 settles which is which.
    for (const GemmTile& tile : prior.start.tiles)
        spreads.push_back(std::log(tile.m * tile.n == largest ? 1.05 : prior.tile_spread));
    spreads.resize(spreads.size() + campaigns, std::log(campaign_spread));
    return spreads;
}

/// Residuals of all rows, then of the prior. The robust loss is inside, because Ceres applies a loss to a
/// block.
class FitCost : public ceres::CostFunction {
public:
    FitCost(std::span<const GemmMeasurement> rows, const GemmPrior& prior)
        : rows_(rows),
          form_(prior.start),
          start_(to_logs(prior.start, count_campaigns(rows))),
          spread_(log_spreads(prior, count_campaigns(rows))) {
        set_num_residuals(static_cast<int>(rows.size() + start_.size()));
        mutable_parameter_block_sizes()->push_back(static_cast<int>(start_.size()));
        std::map<Family, double> count;
        for (const GemmMeasurement& row : rows) count[family_of(row.shape)] += 1;
        for (const GemmMeasurement& row : rows) {
            const double family = std::sqrt(std::min(1.0, rows_per_family / count[family_of(row.shape)]));
            weights_.push_back(row.weight * family * (row.time < short_kernel ? short_weight : 1.0));
        }
    }

    bool Evaluate(double const* const* blocks, double* residuals, double** jacobians) const override {
        const std::vector<double> at(blocks[0], blocks[0] + start_.size());
        evaluate(at, residuals);
        if (jacobians == nullptr || jacobians[0] == nullptr) return true;
        const std::size_t columns = start_.size(), lines = rows_.size() + columns;
        std::vector<double> up(lines), down(lines), moved = at;
        for (std::size_t j = 0; j < columns; ++j) {
            moved[j] = at[j] + log_step;
            evaluate(moved, up.data());
            moved[j] = at[j] - log_step;
            evaluate(moved, down.data());
            moved[j] = at[j];
            for (std::size_t i = 0; i < lines; ++i)
                jacobians[0][i * columns + j] = (up[i] - down[i]) / (2 * log_step);
        }
        return true;
    }

private:
    void evaluate(const std::vector<double>& logs, double* residuals) const {
        const auto [parameters, rates] = from_logs(form_, logs);
        for (std::size_t i = 0; i < rows_.size(); ++i) {
            const GemmMeasurement& row = rows_[i];
            const double error = std::log(fitted_time(row, parameters, rates) / row.time);
            const double x = error / loss_scale;
            const double loss = loss_scale * std::sqrt(2 * (std::sqrt(1 + x * x) - 1));
            residuals[i] = weights_[i] * std::copysign(loss, error);
        }
        for (std::size_t j = 0; j < logs.size(); ++j)
            residuals[rows_.size() + j] = prior_weight * (logs[j] - start_[j]) / spread_[j];
    }

    std::span<const GemmMeasurement> rows_;
    GemmParameters form_;
    std::vector<double> start_, spread_, weights_;
};

/// At most `most_rows`, as many of every family as its fair share, evenly spaced in M.
std::vector<GemmMeasurement> thinned(std::span<const GemmMeasurement> rows) {
    std::map<Family, std::vector<GemmMeasurement>> families;
    for (const GemmMeasurement& row : rows) families[family_of(row.shape)].push_back(row);
    const auto share =
        static_cast<std::size_t>(std::max(4.0, std::ceil(most_rows / static_cast<double>(families.size()))));
    std::vector<GemmMeasurement> taken;
    for (const auto& [family, members] : families) {
        const std::size_t count = std::min(share, members.size());
        for (std::size_t i = 0; i < count; ++i)
            taken.push_back(members[(2 * i + 1) * members.size() / (2 * count)]);
    }
    return taken;
}

struct Certainty {
    std::vector<double> relative_error, prior_share, residual;
};

/// Mean |residual| of the rows, each weighted by how much it depends on parameter `column`.
double residual_near(const Eigen::VectorXd& residuals, const Eigen::VectorXd& column) {
    const double all = column.cwiseAbs().sum();
    return all > 0 ? residuals.cwiseAbs().dot(column.cwiseAbs()) / all : 0;
}

/// From the curvature at the solution; the variance of the residuals is taken from the data.
Certainty certainty(const FitCost& cost, const std::vector<double>& logs, const std::vector<double>& spreads,
                    std::size_t rows) {
    const auto columns = static_cast<Eigen::Index>(logs.size()), data = static_cast<Eigen::Index>(rows);
    Eigen::VectorXd residuals(data + columns);
    Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> jacobian(data + columns, columns);
    const double* block = logs.data();
    double* lines = jacobian.data();
    cost.Evaluate(&block, residuals.data(), &lines);
    const double variance =
        residuals.head(data).squaredNorm() / std::max(1.0, static_cast<double>(rows - logs.size()));
    const Eigen::MatrixXd inverse =
        (jacobian.transpose() * jacobian).ldlt().solve(Eigen::MatrixXd::Identity(columns, columns));
    Certainty result;
    for (Eigen::Index i = 0; i < columns; ++i) {
        const double prior_precision = std::pow(prior_weight / spreads[static_cast<std::size_t>(i)], 2);
        result.relative_error.push_back(std::sqrt(std::max(0.0, inverse(i, i) * variance)));
        result.prior_share.push_back(std::clamp(inverse(i, i) * prior_precision, 0.0, 1.0));
        result.residual.push_back(residual_near(residuals.head(data), jacobian.col(i).head(data)));
    }
    return result;
}

/// Same predictions, but the best efficiency is 1 and the peak is that tile's.
void normalise(GemmParameters& parameters) {
    double best = 0;
    for (const GemmTile& tile : parameters.tiles) best = std::max(best, tile.efficiency);
    parameters.peak_rate = parameters.peak_rate * best;
    for (GemmTile& tile : parameters.tiles) tile.efficiency /= best;
}

}  // namespace

Seconds fitted_time(const GemmMeasurement& row, const GemmParameters& parameters,
                    std::span<const double> campaign_rates) {
    if (row.campaign == 0) return estimate_gemm(row.shape, parameters, row.busy).total();
    assert(static_cast<std::size_t>(row.campaign) <= campaign_rates.size());
    GemmParameters own = parameters;
    own.peak_rate = own.peak_rate * campaign_rates[static_cast<std::size_t>(row.campaign) - 1];
    return estimate_gemm(row.shape, own, row.busy).total();
}

GemmFit fit_gemm(std::span<const GemmMeasurement> rows, const GemmPrior& prior) {
    const std::vector<GemmMeasurement> taken = thinned(rows);
    const FitCost cost(taken, prior);
    std::vector<double> logs = to_logs(prior.start, count_campaigns(taken));
    const std::vector<double> spreads = log_spreads(prior, count_campaigns(taken));
    ceres::Problem::Options keep;
    keep.cost_function_ownership = ceres::DO_NOT_TAKE_OWNERSHIP;
    ceres::Problem problem(keep);
    problem.AddResidualBlock(const_cast<FitCost*>(&cost), nullptr, logs.data());
    for (std::size_t j = 0; j < logs.size(); ++j) {
        double low = logs[j] - 5 * spreads[j], high = logs[j] + 5 * spreads[j];
        if (j < gemm_fields().size()) {
            const Range range = gemm_fields()[j].range;
            if (range.low > 0) low = std::max(low, std::log(range.low));
            high = std::min(high, std::log(range.high));
        }
        problem.SetParameterLowerBound(logs.data(), static_cast<int>(j), low);
        problem.SetParameterUpperBound(logs.data(), static_cast<int>(j), high);
    }
    ceres::Solver::Options options;
    options.linear_solver_type = ceres::DENSE_QR;
    options.logging_type = ceres::SILENT;
    options.max_num_iterations = 80;
    options.function_tolerance = 1e-5;
    options.use_nonmonotonic_steps = true;  // the choice of tile makes small kinks
    ceres::Solver::Summary summary;
    ceres::Solve(options, &problem, &summary);

    const Point found = from_logs(prior.start, logs);
    GemmFit fit;
    fit.parameters = found.parameters;
    fit.campaign_rates = found.campaign_rates;
    normalise(fit.parameters);
    const Certainty known = certainty(cost, logs, spreads, taken.size());
    std::size_t j = 0;
    for (const GemmField& field : gemm_fields()) {
        fit.field_errors.push_back(field.get(fit.parameters) * known.relative_error[j]);
        fit.field_residuals.push_back(known.residual[j]);
        fit.field_prior_share.push_back(known.prior_share[j++]);
    }
    for (const GemmTile& tile : fit.parameters.tiles) {
        fit.tile_errors.push_back(tile.efficiency * known.relative_error[j]);
        fit.tile_residuals.push_back(known.residual[j]);
        fit.tile_prior_share.push_back(known.prior_share[j++]);
    }
    for (const double rate : fit.campaign_rates)
        fit.campaign_errors.push_back(rate * known.relative_error[j++]);
    return fit;
}

}  // namespace overlap
