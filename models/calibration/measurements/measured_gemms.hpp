#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "models/calibration/measurements/gemm_table.hpp"
#include "models/calibration/measurements/measurement_file.hpp"

namespace overlap {

/// The `gemm` cases of a microbenchmark file in one dtype: whole GPU 0, weights as a run before left them.
/// Time is `chain_us`, of GEMMs back to back with no event between, which is how schedules run parts (an
/// event adds 1–2.5 µs to `median`); passes and repeated shapes are averaged. Sorted by (N, K, M, beta).
/// Throws UserError with file and line for a missing or impossible field.
std::vector<GemmMeasurement> measured_gemms(const MeasurementFile& file, DType dtype);

/// The `sustained` cases of one GPU without pauses: mean time of a GEMM in the first 20, 50, … ms, with
/// `busy` that long. Passes are averaged.
std::vector<GemmMeasurement> sustained_gemms(const MeasurementFile& file, DType dtype);

/// Operators whose parts could be each other's: parts of M share (N,K), K-slabs of K/2ⁿ share N and the odd
/// factor of K.
using GemmFamily = std::pair<std::int64_t, std::int64_t>;
GemmFamily operator_family(const GemmShape& shape);

/// Fold of each family when the families, in order, are dealt to `folds` folds in turn.
std::map<GemmFamily, int> deal_families(std::span<const GemmMeasurement> rows, int folds);

}  // namespace overlap
