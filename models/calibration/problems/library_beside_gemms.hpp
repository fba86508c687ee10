#pragma once

#include <filesystem>

#include "models/calibration/fits/fit_device.hpp"

namespace overlap {

/// Public tables of a device in `data`/overlap: a GEMM beside a collective of the vendor's library.
bool has_library_tables(const std::filesystem::path& data, const std::string& device);

/// Fits what a GEMM and a library's collective lose beside each other, apart from compute units, to the tables'
/// factors (time beside over time alone). Only GEMMs by the vendor's library are used, and only of 2048 rows and more:
/// shorter ones are mostly launch. The collective starts first, as it was measured.
///
/// Not fitted: collectives that are shorter than the GEMM. Ranks were not synchronised there, so that they
/// drift apart by up to the difference of both times, and the collective's time includes the wait.
/// Wall times are judged as absolute times.
DeviceProblem library_beside_gemms(const std::filesystem::path& data, const std::string& device);

}  // namespace overlap
