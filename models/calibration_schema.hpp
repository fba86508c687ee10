#pragma once

#include "sim/core/json.hpp"

namespace overlap {

/// JSON schema of configs/calibrations/<device>.json, from the tables of GemmParameters and DeviceSpec.
Json calibration_schema();

}  // namespace overlap
