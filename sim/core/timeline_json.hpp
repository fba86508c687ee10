#pragma once

#include "sim/core/input_keys.hpp"
#include "sim/core/timeline.hpp"

namespace overlap {

/// Largest number of a GPU in spans: GPUs are numbered from 0, and a topology has at most 4,096.
inline constexpr std::int64_t largest_gpu = 4095;

/// The "spans" of a measured case (configs/schema/measured_case.schema.json); times in µs.
Timeline read_spans(ConfigObject& measured);
Json spans_schema();
Json spans_json(const Timeline& timeline);

}  // namespace overlap
