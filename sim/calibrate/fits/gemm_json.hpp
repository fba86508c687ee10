#pragma once

#include <string>

#include "sim/calibrate/fits/fit_gemm.hpp"
#include "sim/calibrate/fits/parameter_json.hpp"

namespace overlap {

/// Names of the parameters that the prior determines more than the rows do ("tiles/64x64").
std::vector<std::string> undetermined_parameters(const GemmFit& fit);

/// The `gemm` group of one dtype in the form that read_gemm_parameters reads. `library`: the
/// kernel library of the rows.
Json gemm_group(const Json& provenance, const std::string& library, const GemmFit& fit,
                const FitOrigin& origin);

}  // namespace overlap
