#pragma once

#include <functional>
#include <vector>

namespace overlap {

/// Parameters as the solver sees them, usually logarithms, and rows whose errors are to be small.
struct RobustProblem {
    std::vector<double> start;  ///< believed before the rows speak, within `spread` two times in three
    std::vector<double> spread;
    std::vector<double> low, high;  ///< bounds
    std::vector<double> weights;    ///< of the rows
    double step = 2e-3;             ///< for differences; wide enough to see across kinks of the model
    /// False: errors jump here and there, and between them slopes say little; only their values decide then
    /// how far a step goes.
    bool smooth = true;
    /// log(predicted / measured) of every row, to the array given, which has one place a row.
    std::function<void(const std::vector<double>& at, double* errors)> errors;
};

struct RobustFit {
    std::vector<double> at;
    std::vector<double> standard_error;
    /// Share of what is known that comes from the prior, in [0, 1]: near 1, the rows say nothing.
    std::vector<double> prior_share;
    /// Mean |error|, robust loss and weights in it, of the rows that depend on the parameter, weighted by how
    /// much they do.
    std::vector<double> residual;
};

/// Least squares by Ceres, SoftLOne loss of 6 %, a prior as strong as about six rows. Deterministic. The
/// standard errors take rows as independent; where they are not, they are lower bounds.
RobustFit robust_fit(const RobustProblem& problem);

}  // namespace overlap
