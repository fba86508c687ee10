#pragma once

#include <functional>
#include <vector>

namespace overlap {

/// A least-squares problem: parameters, usually as logarithms, and rows with errors to minimise.
struct RobustProblem {
    std::vector<double> start;  ///< prior, correct within `spread` two times in three
    std::vector<double> spread;
    std::vector<double> low, high;  ///< bounds
    std::vector<double> weights;    ///< weights of the rows
    double step = 2e-3;             ///< of finite differences; large enough to bridge kinks of the model
    /// False if the errors have jumps, between which slopes say little: then only values
    /// decide how far a step goes.
    bool smooth = true;
    /// Writes log(predicted / measured) of every row to the array, which has one entry for each row.
    using Errors = std::function<void(const std::vector<double>& at, double* errors)>;
    Errors errors;
    /// If given: makes a function that writes the same faster, for points at most `step` in one parameter from `at`.
    std::function<Errors(const std::vector<double>& at)> errors_near;
};

struct RobustFit {
    std::vector<double> at;
    std::vector<double> standard_error;
    /// Fraction of the knowledge that comes from the prior, in [0, 1]: near 1, the rows say nothing.
    std::vector<double> prior_share;
    /// Mean |error|, with robust loss and weights, over the rows that depend on the parameter, weighted by
    /// how much they depend on it.
    std::vector<double> residual;
};

/// Least squares by Ceres with a SoftLOne loss of 6 % and a prior as strong as about six rows. Deterministic.
/// Standard errors assume independent rows; if rows depend on each other, they are lower bounds.
RobustFit robust_fit(const RobustProblem& problem);

/// Does the work of robust_fit(); `fit` is empty before. It is in a module of its own, overlap_ceres.so, because Ceres
/// brings many libraries: hence a plain name, and no value returned.
extern "C" void fit_by_ceres(const RobustProblem& problem, RobustFit& fit);

}  // namespace overlap
