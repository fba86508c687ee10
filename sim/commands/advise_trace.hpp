#pragma once

#include "sim/commands/import_traces.hpp"

namespace overlap {

/// What `sim advise --trace` prints: where an iteration of a recording goes, its pairs, what schedules of them would
/// gain in this run, and what no schedule can. `format`: text or json. `html`: a page to write, too, or empty. Throws
/// UserError.
std::string advice_on_trace(const TraceFlags& flags, const std::string& format, const std::string& html);

}  // namespace overlap
