#pragma once

#include <span>
#include <string>
#include <vector>

#include "models/calibration/fits/error_classes.hpp"
#include "models/calibration/measurements/gemm_table.hpp"

namespace overlap {

/// A measured GEMM and its time by two fits: to all rows, and to the families of other folds only.
struct JudgedGemm {
    GemmMeasurement measured;
    Seconds fitted;
    Seconds held_out;
};

/// Kernels shorter than this are not judged by the classes of times.
inline constexpr Seconds shortest_class_time = microseconds(50);
/// GPUs that the parts are named for.
inline constexpr std::int64_t class_gpus = 4;

/// Names of the two classes that sum the others up.
inline const std::string all_gemms_class = "GEMM, whole and parts";
inline const std::string all_losses_class = "decomposition loss";

/// Errors of times, ≥ 50 µs: of all GEMMs, of whole ones (beta = 0), and of those that are a part of another
/// measured one (M/2, M/P, M/2P, M/P², (P−1)M/P² of its rows; K/2, K/4 with beta = 1), shorter ones apart;
/// and of the decomposition loss, sum of the parts / whole, of wholes ≥ 50 µs with parts of any length.
/// Long runs (`busy` set) are a class of their own.
std::vector<ErrorClass> gemm_classes(std::span<const JudgedGemm> gemms);

}  // namespace overlap
