#pragma once

#include "sim/core/timeline.hpp"
#include "sim/report/text_format.hpp"

namespace overlap {

/// Lines that show one GPU over the whole run: a time axis, a row each for computation, local work and
/// transfers (those without spans are left out), and what the letters stand for. Empty where the GPU did
/// nothing. Coarse: a column is 1/72 of the run.
std::vector<std::string> gantt(const Timeline& timeline, int gpu, const TimeScale& scale);

}  // namespace overlap
