#pragma once

#include "sim/pricing/effects.hpp"
#include "sim/run/scenario.hpp"

namespace overlap {

/// Why the power of work on the machine can't be told, such as "the power of NICs is not known"; empty if it can be.
/// `operands`: types of its GEMMs.
std::string no_power_constants(const Machine& machine, std::span<const DType> operands = {});

/// Throws UserError if no measured constants say what power the device's work takes.
void require_power_constants(const Machine& machine, const std::string& origin);

/// The fastest speed at which one iteration of `graph` draws no more than the boards' limit on average; at full speed
/// if it never does:
///   idle + (active + Σ energy of the work(speed)) / period(speed) ≤ board_power_W
/// One iteration follows the other without a gap. All GPUs run at one speed. A limit over some milliseconds is
/// not modelled: the mean over an iteration counts, so iterations are to be shorter than the driver's control loop
/// (on H200 pauses of 0.2 to 3 ms after 2 to 5 ms of GEMMs count in full: traces/h200_1/pytorch).
SteadyState steady_state(const Scenario& scenario, const TaskGraph& graph);

/// Time from the start of an iteration to the start of the next, if one iteration takes `makespan`. In a steady state
/// it is at least the time that the busiest host takes for its calls, here `calls` times as long as priced.
Seconds period_of(const Scenario& scenario, const TaskGraph& graph, Seconds makespan, double calls = 1);

/// `scenario` on a machine at its steady speed for `graph`; `scenario` itself where it runs once, or has settled
/// before.
Scenario settled(const Scenario& scenario, const TaskGraph& graph);

}  // namespace overlap
