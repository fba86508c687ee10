#pragma once

#include <string>

#include "sim/core/json.hpp"

namespace overlap {

/// JSON schema of configs/devices/<name>.json, from the tables of DeviceSpec.
Json device_schema();

/// Schema of one of `calibrated_groups`. A value keeps to `definition`: "sourced", or "fitted" in a calibration.
Json calibrated_group_schema(const std::string& group, const std::string& definition);

/// What "sourced" and "fitted" are.
Json value_definitions();

}  // namespace overlap
