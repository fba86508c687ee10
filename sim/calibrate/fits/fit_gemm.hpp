#pragma once

#include <span>
#include <vector>

#include "models/gemm_model.hpp"
#include "sim/calibrate/fits/parameter_json.hpp"
#include "sim/calibrate/measurements/gemm_table.hpp"

namespace overlap {

/// Prior of a fit: log-normal around `start`. A spread of 2 means "within a factor of 2, about two times
/// in three". The prior keeps parameters that a table does not determine at a meaningful value. A field
/// that starts at 0 stays 0.
struct GemmPrior {
    GemmParameters start;
    std::vector<double> field_spread;  ///< factor > 1, one for each of GemmParameters::fields()
    double tile_spread = 1.2;          ///< of the tile efficiencies; the largest tile stays within 5 %
    double small_tile_spread =
        0;                   ///< of tiles of less than half of the largest one's area; 0: as of the others
    int rows_of_family = 4;  ///< least number of a family's rows that are fitted, where it has so many
};

struct GemmFit {
    GemmParameters parameters;        ///< the best tile's efficiency is 1
    std::vector<FittedValue> fields;  ///< those of GemmParameters::fields(), in their units
    std::vector<FittedValue> tiles;   ///< efficiencies
    /// Compute rates of campaigns 1, 2, … relative to campaign 0, whose rate is in
    /// `parameters`; standard errors.
    std::vector<double> campaign_rates, campaign_errors;
};

/// Kernel time of a row by a fit, at the rate of the row's campaign.
Seconds fitted_time(const GemmMeasurement& row, const GemmParameters& parameters,
                    std::span<const double> campaign_rates);

/// Fits the fields and tile efficiencies with Ceres. Residual: log(predicted / measured), SoftLOne loss of 6
/// %. Rows below 20 µs have a third of the weight; every (N,K) family weighs at most `rows_per_family` rows;
/// the prior keeps a campaign's rate within 20 % of the main one. Deterministic. Standard errors assume
/// independent rows; rows of a family are not independent, so the errors are lower bounds.
GemmFit fit_gemm(std::span<const GemmMeasurement> rows, const GemmPrior& prior);

}  // namespace overlap
