#pragma once

#include <span>
#include <string>
#include <vector>

#include "models/calibration/measurements/gemm_table.hpp"
#include "models/gemm_model.hpp"

namespace overlap {

/// What is believed before the data speak: log-normal around `start`. A spread of 2 says "within a factor 2,
/// about two times in three". It keeps parameters that a table does not determine at a meaningful value. A
/// field that starts at 0 stays there.
struct GemmPrior {
    GemmParameters start;
    std::vector<double> field_spread;  ///< factor > 1, one for each of gemm_fields()
    double tile_spread = 1.2;          ///< of the tiles' efficiencies; the largest tile is held within 5 %
};

struct GemmFit {
    GemmParameters parameters;         ///< the best tile's efficiency is 1
    std::vector<double> field_errors;  ///< standard errors in the unit of gemm_fields()
    std::vector<double> tile_errors;   ///< standard errors of the efficiencies
    /// Share of what is known that comes from the prior, in [0, 1]: near 1, the table says nothing.
    std::vector<double> field_prior_share, tile_prior_share;
    /// Mean |log(predicted / measured)|, robust loss and weights in it, of the rows that depend on the
    /// parameter, weighted by how much they do.
    std::vector<double> field_residuals, tile_residuals;
    /// Compute rates of campaigns 1, 2, … in shares of campaign 0's, which `parameters` has; standard errors.
    std::vector<double> campaign_rates, campaign_errors;
};

/// Time of the row's kernel by a fit, at its campaign's rate.
Seconds fitted_time(const GemmMeasurement& row, const GemmParameters& parameters,
                    std::span<const double> campaign_rates);

/// Fits the fields and tile efficiencies with Ceres: residual log(predicted / measured), SoftLOne loss of 6
/// %, rows below 20 µs at a third of the weight, every (N,K) family weighted as at most `rows_per_family`
/// rows; a campaign's rate is believed to be within 20 % of the main one's. Deterministic. The standard
/// errors take rows as independent; rows of a family are not, so they are lower bounds.
GemmFit fit_gemm(std::span<const GemmMeasurement> rows, const GemmPrior& prior);

}  // namespace overlap
