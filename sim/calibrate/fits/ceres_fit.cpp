#include "sim/calibrate/fits/robust_fit.hpp"

#include <ceres/ceres.h>

#include <algorithm>
#include <cmath>

namespace overlap {
namespace {

constexpr double loss_scale = 0.06;    // relative error above which rows count linearly instead of squared
constexpr double prior_weight = 0.15;  // a prior as strong as about (0.15 / 0.06)² = 6 rows

/// Residuals of all rows, then of the prior. The robust loss is applied here, because Ceres applies
/// a loss to a whole block.
class FitCost : public ceres::CostFunction {
public:
    explicit FitCost(const RobustProblem& problem) : problem_(problem) {
        set_num_residuals(static_cast<int>(problem.weights.size() + problem.start.size()));
        mutable_parameter_block_sizes()->push_back(static_cast<int>(problem.start.size()));
    }

    bool Evaluate(double const* const* blocks, double* residuals, double** jacobians) const override {
        const std::vector<double> at(blocks[0], blocks[0] + problem_.start.size());
        evaluate(problem_.errors, at, residuals);
        if (jacobians == nullptr || jacobians[0] == nullptr) return true;
        const std::size_t columns = at.size(), lines = problem_.weights.size() + columns;
        std::vector<double> up(lines), down(lines), moved = at;
        const RobustProblem::Errors near = problem_.errors_near ? problem_.errors_near(at) : problem_.errors;
        for (std::size_t j = 0; j < columns; ++j) {
            moved[j] = at[j] + problem_.step;
            evaluate(near, moved, up.data());
            moved[j] = at[j] - problem_.step;
            evaluate(near, moved, down.data());
            moved[j] = at[j];
            for (std::size_t i = 0; i < lines; ++i)
                jacobians[0][i * columns + j] = (up[i] - down[i]) / (2 * problem_.step);
        }
        return true;
    }

private:
    void evaluate(const RobustProblem::Errors& errors, const std::vector<double>& at,
                  double* residuals) const {
        errors(at, residuals);
        for (std::size_t i = 0; i < problem_.weights.size(); ++i) {
            const double error = residuals[i], x = error / loss_scale;
            const double loss = loss_scale * std::sqrt(2 * (std::sqrt(1 + x * x) - 1));
            residuals[i] = problem_.weights[i] * std::copysign(loss, error);
        }
        for (std::size_t j = 0; j < at.size(); ++j)
            residuals[problem_.weights.size() + j] =
                prior_weight * (at[j] - problem_.start[j]) / problem_.spread[j];
    }

    const RobustProblem& problem_;
};

/// Mean |residual| of the rows, each weighted by how much it depends on parameter `column`.
double residual_near(const Eigen::VectorXd& residuals, const Eigen::VectorXd& column) {
    const double all = column.cwiseAbs().sum();
    return all > 0 ? residuals.cwiseAbs().dot(column.cwiseAbs()) / all : 0;
}

/// Standard errors from the curvature at the solution, with the variance of the residuals.
void add_certainty(const RobustProblem& problem, const FitCost& cost, RobustFit& fit) {
    const std::size_t rows = problem.weights.size();
    const auto columns = static_cast<Eigen::Index>(fit.at.size()), data = static_cast<Eigen::Index>(rows);
    Eigen::VectorXd residuals(data + columns);
    Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> jacobian(data + columns, columns);
    const double* block = fit.at.data();
    double* lines = jacobian.data();
    cost.Evaluate(&block, residuals.data(), &lines);
    const double freedom = static_cast<double>(rows) - static_cast<double>(fit.at.size());
    const double variance = residuals.head(data).squaredNorm() / std::max(1.0, freedom);
    const Eigen::MatrixXd inverse =
        (jacobian.transpose() * jacobian).ldlt().solve(Eigen::MatrixXd::Identity(columns, columns));
    for (Eigen::Index i = 0; i < columns; ++i) {
        const double prior_precision =
            std::pow(prior_weight / problem.spread[static_cast<std::size_t>(i)], 2);
        fit.standard_error.push_back(std::sqrt(std::max(0.0, inverse(i, i) * variance)));
        fit.prior_share.push_back(std::clamp(inverse(i, i) * prior_precision, 0.0, 1.0));
        fit.residual.push_back(residual_near(residuals.head(data), jacobian.col(i).head(data)));
    }
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void fit_by_ceres(const RobustProblem& problem,
                                                                    RobustFit& fit) {
    const FitCost cost(problem);
    fit.at = problem.start;
    ceres::Problem::Options keep;
    keep.cost_function_ownership = ceres::DO_NOT_TAKE_OWNERSHIP;
    ceres::Problem least_squares(keep);
    least_squares.AddResidualBlock(const_cast<FitCost*>(&cost), nullptr, fit.at.data());
    for (std::size_t j = 0; j < fit.at.size(); ++j) {
        least_squares.SetParameterLowerBound(fit.at.data(), static_cast<int>(j), problem.low[j]);
        least_squares.SetParameterUpperBound(fit.at.data(), static_cast<int>(j), problem.high[j]);
    }
    ceres::Solver::Options options;
    options.linear_solver_type = ceres::DENSE_QR;
    options.logging_type = ceres::SILENT;
    options.max_num_iterations = 80;
    options.function_tolerance = 1e-5;
    if (!problem.smooth) options.line_search_interpolation_type = ceres::BISECTION;
    options.use_nonmonotonic_steps = true;  // choices inside the model make small kinks
    ceres::Solver::Summary summary;
    ceres::Solve(options, &least_squares, &summary);
    add_certainty(problem, cost, fit);
}

}  // namespace overlap
