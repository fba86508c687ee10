#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/calibration/fits/fit_gemm.hpp"

namespace overlap {

/// A published single measurement that no table has, with more weight than a row.
struct GemmAnchor {
    GemmMeasurement measurement;
    std::string source;
};

/// How one device and dtype is fitted: which rows of which public table, and what is believed beforehand.
struct GemmRecipe {
    std::string device;
    DType dtype = DType::bf16;
    std::string file;  ///< in the folder `gemm` of the public data
    std::string origin;
    std::string licence;
    GemmTableFilter filter;
    GemmPrior prior;
    std::vector<GemmAnchor> anchors;
    double deployed_units =
        0;  ///< compute units of the device, where the table is of a sibling with another count
    std::string note;
    bool check_only = false;  ///< never fitted: another library than what the device's file is fitted to
    /// Kernel start and end, where the table's times hold gaps between launches: those are fitted as launch,
    /// and are no part of what is shipped. 0: the fitted one is.
    double deployed_launch_us = 0;
    std::string launch_source = "";
    /// Where the filter names kernel libraries: prior of the fit to all rows that theirs start from. Its
    /// tiles may be finer than the mix tells apart.
    std::optional<GemmPrior> start_of_libraries = {};
    std::string library = "";                     ///< whose kernels the rows are, for readers of a price
    std::vector<std::string> library_names = {};  ///< the same of each of the filter's kernel libraries
};

/// A dtype of a device that is fitted to our own microbenchmark's results.
struct MeasuredGemmRecipe {
    std::string device;
    std::string machine;  ///< `device` of the first line of its files
    DType dtype = DType::bf16;
    /// Where too few rows were measured to start from nothing: the fit of another dtype is the prior, its
    /// rate times `rate_ratio`, everything within `spread`.
    DType prior_dtype = DType::bf16;
    double rate_ratio = 1, rate_spread = 1.1, spread = 1.1;
    std::int64_t k_step = 64;
    GemmPrior prior;  ///< where prior_dtype is the dtype itself
    std::string note;
};

/// A dtype without a usable table: another's parameters with the rates scaled.
struct GemmDerivation {
    std::string device;
    DType dtype = DType::bf16;
    std::string from_device;
    DType from_dtype = DType::bf16;
    double rate_ratio = 1;  ///< of the compute rate
    double hbm_ratio = 1;   ///< of the memory rates
    std::string reason;     ///< where the ratios are from
};

const std::vector<GemmRecipe>& gemm_recipes();
/// In an order in which a prior comes before what starts from it.
const std::vector<MeasuredGemmRecipe>& measured_gemm_recipes();
/// In an order in which what is derived from comes first.
const std::vector<GemmDerivation>& gemm_derivations();

}  // namespace overlap
