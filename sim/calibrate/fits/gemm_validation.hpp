#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "sim/calibrate/fits/gemm_libraries_fit.hpp"

namespace overlap {

/// Relative errors |predicted / measured − 1| of the kernels that take at least `shortest_judged`.
struct GemmErrors {
    std::size_t rows = 0;
    std::size_t families = 0;
    double mean = 0;
    double p90 = 0;
};
inline constexpr Seconds shortest_judged = microseconds(20);
GemmErrors gemm_errors(std::span<const GemmMeasurement> rows,
                       const std::function<Seconds(const GemmMeasurement&)>& predicted);
GemmErrors gemm_errors(std::span<const GemmMeasurement> rows, const GemmParameters& parameters,
                       std::span<const double> campaign_rates = {});

/// A family is one (N,K). A hash puts each family into one of four folds, so no family is on both sides.
/// Every committed calibration is fitted without fold 0.
inline constexpr int gemm_folds = 4;
int gemm_fold(const GemmShape& shape);
std::vector<GemmMeasurement> rows_of_fold(std::span<const GemmMeasurement> rows, int fold, bool inside);

/// Fits of the table's kernel libraries without fold 0, and the errors when the library of each row is known.
struct GemmLibraryValidation {
    std::vector<GemmFit> fits;  ///< empty if the table does not distinguish libraries
    GemmErrors fitted;
    GemmErrors held_out;
    std::vector<GemmErrors> held_out_of_each;
    double cross_validated_mean = 0;
    double cross_validated_p90 = 0;
};

/// The fit without fold 0, its errors on both sides, and the mean error with each of the four folds held out.
struct GemmValidation {
    GemmFit fit;
    GemmErrors fitted;
    GemmErrors held_out;
    double cross_validated_mean = 0;
    double cross_validated_p90 = 0;
    GemmLibraryValidation libraries;
};
/// `anchors` are in every fit and are never judged. `start_of_libraries`: prior of a second fit to all rows,
/// from which the fits of the kernel libraries start.
GemmValidation fit_and_validate(std::span<const GemmMeasurement> rows, const GemmPrior& prior,
                                std::span<const GemmMeasurement> anchors = {},
                                const std::optional<GemmPrior>& start_of_libraries = {});

}  // namespace overlap
