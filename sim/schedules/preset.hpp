#pragma once

#include "sim/core/what_if.hpp"
#include "sim/schedules/schedule.hpp"

namespace overlap {

/// A schedule of a library or a paper: one of schedules() with its own parameters, from a file of
/// configs/schedules (configs/schema/schedule.schema.json). It serves those workloads listed in the file that
/// its schedule serves. Runs may override its parameters. Throws UserError.
ScheduleEntry read_preset(const ConfigFile& file);

}  // namespace overlap
