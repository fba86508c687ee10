#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/calibrate/fits/error_classes.hpp"
#include "sim/calibrate/measurements/gemm_table.hpp"

namespace overlap {

/// A measured GEMM and its time by two fits: to all rows, and to the rows of other folds.
struct JudgedGemm {
    GemmMeasurement measured;
    Seconds fitted;
    Seconds held_out;
};

/// The time classes leave out shorter kernels.
inline constexpr Seconds shortest_class_time = microseconds(50);
/// Number of GPUs in the names of parts (M/P …).
inline constexpr std::int64_t class_gpus = 4;

/// The two classes that summarise the others.
inline const std::string all_gemms_class = "GEMM, whole and parts";
inline const std::string all_losses_class = "decomposition loss";

/// Error classes of times ≥ 50 µs: all GEMMs; whole GEMMs (beta = 0); parts of another measured GEMM (M/2,
/// M/P, M/2P, M/P², (P−1)M/P² of its rows; K/2, K/4 with beta = 1), with a class for shorter ones. Further
/// classes: decomposition loss (sum of the parts / whole) of whole GEMMs ≥ 50 µs with parts of any length,
/// and long runs (`busy` set).
std::vector<ErrorClass> gemm_classes(std::span<const JudgedGemm> gemms);

}  // namespace overlap
