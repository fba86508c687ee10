#pragma once

#include <filesystem>
#include <string>

#include "sim/topology/derived_values.hpp"

namespace overlap {

/// The calibrated device of `devices` whose numbers are nearest to `numbers` (values by key, such as
/// "compute_units", "peak_TFLOPS.bf16"): least sum of |log ratio|, by name where equal. Only devices whose
/// description says the `platform` ("AMD", "NVIDIA"; empty: either), and where `measured`, only those whose
/// calibration has GEMMs that microbench measured, if there are such. Throws UserError if there is none.
std::string nearest_device(const Factors& numbers, const std::string& platform,
                           const std::filesystem::path& devices, const std::filesystem::path& calibrations,
                           bool measured = false);

/// The calibration file of a device: that of the same name in `calibrations`. A device without one takes the
/// GEMM parameters of the calibrated device that its file names with "like" (else of the nearest one), scaled
/// by the ratios of the values that they follow (moved_factor()); `library` and every source say so.
ConfigFile calibration_of(const ConfigFile& device, const std::filesystem::path& devices,
                          const std::filesystem::path& calibrations);

/// Fits of attention and grouped GEMMs of a calibration (`kernel_groups` that it has), scaled as estimates of
/// another device by the ratios of the values that they follow. A number format that the other device's data sheet does
/// not name is left out.
Json scaled_kernels(const Json& fitted, const Json& like_device, const Json& device);

/// "value of h200", "value of h200 x 1.2".
std::string value_of(const std::string& device, double factor);

/// With six significant digits.
double six_digits(double value);

}  // namespace overlap
