#pragma once

#include <string>

#include "models/calibration/fit_gemm.hpp"
#include "sim/core/config_reader.hpp"

namespace overlap {

/// Six digits are more than any fit knows, and keep the files readable and diffs small.
double rounded(double value);
/// Percent with two decimals.
double percent(double share);

/// {"value", "source"} of what is not fitted.
Json parameter_entry(double value, const std::string& source);

/// Names of the parameters of which the rows say less than the prior does ("tiles/64x64").
std::vector<std::string> undetermined_parameters(const GemmFit& fit);

/// What the rows were, for the parameters of a fit.
struct FitOrigin {
    std::string fitted;  ///< source of a parameter that the rows determine
    std::string prior;   ///< of one that they do not
    std::string file;    ///< with `date` in every parameter, with its unit and residual, where not empty
    std::string date;
};
/// The `gemm` group of one dtype, in the form that read_gemm_parameters reads.
Json gemm_group(const Json& provenance, const GemmFit& fit, const FitOrigin& origin);

}  // namespace overlap
