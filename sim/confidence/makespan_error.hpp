#pragma once

#include <functional>

#include "models/cost_model.hpp"
#include "sim/confidence/confidence.hpp"
#include "sim/schedules/host.hpp"

namespace overlap {

/// Factors on the times of each kind of work.
struct Lengthened {
    double gemm = 1, dma = 1, kernels = 1, collectives = 1, grouped = 1, attention = 1, host = 1;

    double of(const Task& task) const;
};

/// Priced work, and how it runs.
struct PricedRun {
    const TaskGraph& graph;
    const Machine& machine;
    const std::vector<std::string>& models;  ///< cost models chosen in place of defaults
    const Host* host = nullptr;              ///< who made the calls in the graph; null: nobody
    bool overlapped = false;                 ///< computation and communication at once: contention counts
    bool own_kernel = false;                 ///< ScheduleEntry::own_kernel
    bool once = true;                        ///< not in a steady state
};

/// Errors to expect of each kind of work in a graph and of its contention, as mean |predicted / measured − 1|: in place of
/// factors. 0 where none is known.
Lengthened expected_errors(const PricedRun& run);

/// What is known about each kind of price in a graph.
std::vector<PricedPart> priced_parts(const PricedRun& run);

/// What is known about the prices of a run. Where schedules of such kernels were measured on the machine, they give the
/// makespan's error. Elsewhere each kind of work is made longer by its own held-out error, one after another, and the
/// changes of the makespan are added as squares: errors of parts count as independent, and those that nobody measured
/// are left out. `makespan`: as simulated; `with`: that with longer work. Ignored: errors of launches, and of what-if
/// values, which count as given.
Confidence confidence_of(const PricedRun& run, Seconds makespan,
                         const std::function<Seconds(const Lengthened&)>& with);

}  // namespace overlap
