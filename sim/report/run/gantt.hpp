#pragma once

#include "sim/core/timeline.hpp"
#include "sim/report/text_format.hpp"

namespace overlap {

/// Lines that show one GPU over the whole run: a time axis, one row each for computation, local work and
/// transfers (rows without spans are left out), and the meaning of the letters. Empty if the GPU is idle.
/// Resolution: a column is 1/72 of the run.
std::vector<std::string> gantt(const Timeline& timeline, int gpu, const TimeScale& scale);

}  // namespace overlap
