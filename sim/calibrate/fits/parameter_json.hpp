#pragma once

#include <span>
#include <string>

#include "sim/calibrate/fits/error_classes.hpp"
#include "sim/core/config_reader.hpp"

namespace overlap {

/// Rounds to six digits: more than any fit determines, and keeps files readable and diffs small.
double rounded(double value);
/// Per cent with two decimals.
double percent(double share);

/// A fitted parameter.
struct FittedValue {
    double value = 0;
    double standard_error = 0;
    double prior_share =
        0;  ///< fraction of the knowledge that comes from the prior; near 1, the rows say nothing
    /// Mean |log(predicted / measured)|, with robust loss and weights, over the rows that depend on it.
    double residual = 0;
};
/// Prior share from which a parameter counts as not determined by its rows.
inline constexpr double mostly_prior = 0.5;

Json classes_json(std::span<const ErrorClass> classes);

/// {"value", "source"} of a parameter that is not fitted.
Json parameter_entry(double value, const std::string& source);

/// Where the rows of a fit come from.
struct FitOrigin {
    std::string fitted;  ///< source of a parameter that the rows determine
    std::string prior;   ///< source of a parameter that the rows do not determine
    std::string file;    ///< if not empty, written with `date`, unit and residual to every parameter
    std::string date;
};
Json parameter_entry(const std::string& key, const FittedValue& fitted, const FitOrigin& origin);

}  // namespace overlap
