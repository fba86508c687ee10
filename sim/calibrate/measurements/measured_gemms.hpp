#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "sim/calibrate/measurements/gemm_table.hpp"
#include "sim/calibrate/measurements/measurement_file.hpp"

namespace overlap {

/// A line of kind "gemm".
struct GemmLine {
    GemmShape shape;
    double us = 0;  ///< `chain_us`
    std::int64_t gpu = 0;
    bool on_all_units = false;
    bool is_cold = false;  ///< else the run before left the weights in the cache
};
GemmLine read_gemm_line(ConfigObject& line);

/// Times of repeated cases, whose mean counts.
struct MeanTime {
    double us = 0;
    int count = 0;
    void add(double more) { us += more, ++count; }
    double mean() const { return us / count; }
};

/// The `gemm` cases of a microbenchmark file in one dtype, all of GPU 0. The run before has left the weights in the
/// cache; a shape that was measured only with weights from memory (few rows) has that time. Time is `chain_us`: GEMMs
/// back to back without events, as schedules run parts (an event adds 1–2.5 µs to `median`). Passes and repeated shapes
/// are averaged. Sorted by (N, K, M, beta). Throws UserError with file and line for a missing or impossible field.
std::vector<GemmMeasurement> measured_gemms(const MeasurementFile& file, DType dtype);

/// The `sustained` cases of one GPU without pauses: mean time of a GEMM in the first 20, 50, … ms; `busy` is
/// set to that time. Passes are averaged.
std::vector<GemmMeasurement> sustained_gemms(const MeasurementFile& file, DType dtype);

/// Operators whose GEMMs can be parts of each other: parts of M share (N,K); K-slabs of K/2ⁿ share N
/// and the odd factor of K.
using GemmFamily = std::pair<std::int64_t, std::int64_t>;
GemmFamily operator_family(const GemmShape& shape);

/// Fold of each family: families are dealt, in order, to `folds` folds in turn.
std::map<GemmFamily, int> deal_families(std::span<const GemmMeasurement> rows, int folds);

}  // namespace overlap
