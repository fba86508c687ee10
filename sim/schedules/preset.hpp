#pragma once

#include "sim/core/what_if.hpp"
#include "sim/schedules/schedule.hpp"

namespace overlap {

/// What a library or a paper runs, as one of schedules() with parameters of its own: a file of
/// configs/schedules (configs/schema/schedule.schema.json). It serves the workloads that the file lists, of
/// those that its schedule serves; runs may override its parameters. Throws UserError.
ScheduleEntry read_preset(const ConfigFile& file);

}  // namespace overlap
