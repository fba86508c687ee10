#pragma once

#include "sim/confidence/makespan_error.hpp"
#include "sim/run/experiment.hpp"

namespace overlap {

/// How far prices may be off: mean |true / predicted − 1| of each kind of work, and of latencies.
struct PriceErrors {
    Lengthened work;
    double latency = 0;
};
/// Of the work of both scenarios. Where a machine was measured, as there; at least the error of any run.
PriceErrors price_errors(const Scenario& one, const Scenario& other);

/// A gain under draws of the machine's constants.
struct GainDraws {
    int draws = 0;
    double p10 = 0;    ///< nine of ten draws gain at least this
    double error = 0;  ///< mean distance from the gain without draws
    double ahead = 0;  ///< share of draws with a gain above 0
};
/// By how much `slow` takes longer than `fast`, as a share of `fast`, under `draws` draws. In each, both see the same
/// machine: of each kind of work a common factor, and one of its own for each size, each with half of the variance.
GainDraws drawn_gain(const Scenario& slow, const Scenario& fast, const PriceErrors& errors, int draws,
                     std::uint64_t seed);

}  // namespace overlap
