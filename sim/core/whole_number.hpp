#pragma once

#include <cmath>
#include <string>

#include "sim/core/config_reader.hpp"

namespace overlap {

/// ConfigObject::sourced of a count; a fraction is refused with the two whole numbers next to it, since a
/// factor of a what-if makes fractions ("1.2x" of 304).
inline double sourced_whole(ConfigObject& config, const std::string& key, Range range) {
    const double value = config.sourced(key, range);
    if (value != std::floor(value))
        config.fail(key + "/value", "is " + Json(value).dump() + ", but must be a whole number (" +
                                        std::to_string(std::llround(std::floor(value))) + " or " +
                                        std::to_string(std::llround(std::ceil(value))) + ")");
    return value;
}

}  // namespace overlap
