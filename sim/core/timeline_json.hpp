#pragma once

#include "sim/core/config_reader.hpp"
#include "sim/core/timeline.hpp"

namespace overlap {

/// The "spans" of a measured case (configs/schema/measured_case.schema.json); times in µs.
Timeline read_spans(ConfigObject& measured);
Json spans_json(const Timeline& timeline);

}  // namespace overlap
