#pragma once

#include <filesystem>
#include <string>

#include "models/calibration/fits/fit_device.hpp"
#include "models/calibration/fits/gemm_calibration.hpp"
#include "models/calibration/fits/measured_calibration.hpp"

namespace overlap {

/// Cases, errors by class, and what is not determined, of a fit of GEMMs in `folder`.
std::string report(const MeasuredCalibration& calibration, const std::string& folder);
/// Report of a fit of another group.
std::string report(const DeviceCalibration& calibration, const std::string& device);

/// Draws `folder`/<device>_<dtype>_gemm.svg: measured GEMMs against predictions by a fit that has not seen
/// their family, by class: whole, K-slab, below 50 us, long run. Throws UserError without gnuplot.
void draw(const std::filesystem::path& folder, const MeasuredCalibration& calibration);
/// Draws `folder`/<device>_<problem>.svg: rows of a fit of device keys against predictions by the fit that
/// has not seen their family; one series for each class.
void draw(const std::filesystem::path& folder, const std::string& device,
          const DeviceCalibration& calibration);
/// Draws the fit to a public table: families of the held-out fold, kernels of 20 us and more, by M.
void draw(const std::filesystem::path& folder, const GemmCalibrationResult& result);

}  // namespace overlap
