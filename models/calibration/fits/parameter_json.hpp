#pragma once

#include <span>
#include <string>

#include "models/calibration/fits/error_classes.hpp"
#include "sim/core/config_reader.hpp"

namespace overlap {

/// Six digits are more than any fit knows, and keep the files readable and diffs small.
double rounded(double value);
/// Percent with two decimals.
double percent(double share);

/// One parameter, fitted.
struct FittedValue {
    double value = 0;
    double standard_error = 0;
    double prior_share = 0;  ///< of what is known of it; near 1, the rows say nothing
    double residual = 0;     ///< of the rows that depend on it
};
/// Prior share from which a parameter counts as not determined by its rows.
inline constexpr double mostly_prior = 0.5;

Json classes_json(std::span<const ErrorClass> classes);

/// {"value", "source"} of what is not fitted.
Json parameter_entry(double value, const std::string& source);

/// What the rows were, for the parameters of a fit.
struct FitOrigin {
    std::string fitted;  ///< source of a parameter that the rows determine
    std::string prior;   ///< of one that they do not
    std::string file;    ///< with `date` in every parameter, with its unit and residual, where not empty
    std::string date;
};
Json parameter_entry(const std::string& key, const FittedValue& fitted, const FitOrigin& origin);

}  // namespace overlap
