#pragma once

#include "sim/effects.hpp"
#include "sim/engine/engine.hpp"
#include "sim/report/result.hpp"
#include "sim/scenario.hpp"

namespace overlap {

/// What a run takes, without baseline and losses.
struct Prediction {
    Seconds makespan, p10, p90;  ///< median and quantiles over the seeds
    std::size_t seeds = 1;
    Timeline timeline;  ///< of a median run
};
Prediction predict(const Scenario& scenario);

/// Runs the schedule and, for the baseline and the losses, `serial` and the counterfactuals. Every time is
/// the median over the seeds; the timeline is that of a median run.
RunResult run(const Scenario& scenario);

}  // namespace overlap
