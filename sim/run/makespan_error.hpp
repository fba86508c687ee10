#pragma once

#include "sim/report/run/confidence.hpp"
#include "sim/run/experiment.hpp"

namespace overlap {

/// What is known about each kind of price in a graph. `models`: cost models chosen in place of defaults.
/// `overlapped`: whether computation and communication run at the same time, so that contention counts.
/// `host`: who made the calls in the graph; null: nobody.
std::vector<PricedPart> priced_parts(const TaskGraph& graph, const Machine& machine,
                                     const std::vector<std::string>& models, bool overlapped,
                                     const Host* host);

/// What is known about the prices of a scenario's graph. Where schedules of such kernels were measured on the
/// machine, they give the makespan's error. Elsewhere each kind of work is made longer by its own held-out error, one
/// after another, and the changes of the makespan are added as squares: errors of parts count as independent, and
/// those that nobody measured are left out. `run`: makespan and seed. Ignored: errors of launches, and of what-if
/// values, which count as given.
Confidence confidence_of(const Scenario& scenario, const TaskGraph& graph, const Experiment& experiment,
                         const Makespans::value_type& run, bool overlapped);

}  // namespace overlap
