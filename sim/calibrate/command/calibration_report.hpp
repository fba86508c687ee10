#pragma once

#include <string>

#include "sim/calibrate/fits/fit_device.hpp"
#include "sim/calibrate/fits/measured_calibration.hpp"

namespace overlap {

/// Cases, errors by class, and what is not determined, of a fit of GEMMs in `folder`.
std::string report(const MeasuredCalibration& calibration, const std::string& folder);
/// Report of a fit of another group.
std::string report(const DeviceCalibration& calibration, const std::string& device);

}  // namespace overlap
