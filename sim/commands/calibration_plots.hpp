#pragma once

#include <filesystem>

#include "models/calibration/fits/fit_device.hpp"
#include "models/calibration/fits/gemm_calibration.hpp"
#include "models/calibration/fits/measured_calibration.hpp"

namespace overlap {

/// Draws `folder`/<device>_<dtype>_gemm.svg: GEMMs as measured against those predicted by a fit that has not
/// seen their family, by class: whole, K-slab, below 50 us, long run. Throws UserError without gnuplot.
void draw(const std::filesystem::path& folder, const MeasuredCalibration& calibration);
/// `folder`/<device>_<problem>.svg: what was fitted to a device's keys, by the fit that has not seen the
/// family, a series a class.
void draw(const std::filesystem::path& folder, const std::string& device,
          const DeviceCalibration& calibration);
/// The same of a public table: the families of the held-out fold, kernels of 20 us and more, by M.
void draw(const std::filesystem::path& folder, const GemmCalibrationResult& result);

}  // namespace overlap
