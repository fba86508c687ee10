#pragma once

#include "sim/engine/engine.hpp"
#include "sim/pricing/effects.hpp"
#include "sim/report/run/result.hpp"
#include "sim/run/baseline.hpp"
#include "sim/run/scenario.hpp"

namespace overlap {

/// Makespan and timeline of a run, without baseline and losses.
struct Prediction {
    Seconds makespan, p10, p90;  ///< median and quantiles over the seeds
    std::size_t seeds = 1;
    Timeline timeline;  ///< of a median run
    Confidence confidence = {};
};
/// `judged`: with its confidence, which takes some more simulations.
Prediction predict(const Scenario& scenario, bool judged = false);
/// The makespan alone.
Seconds makespan_of(const Scenario& scenario);

struct RunOptions {
    bool record = true;              ///< with timeline and counters; all numbers are the same without
    Baselines* baselines = nullptr;  ///< cache shared by the runs of a sweep
};

/// Runs the schedule and, for baseline and losses, `serial` and the counterfactuals. Makespans are medians over the
/// seeds; the timeline, the losses and the time of transfers alone are those of the seed with the median makespan.
RunResult run(const Scenario& scenario, const RunOptions& options = {});

/// Sets the baseline of a run, with its speed-up and overlap efficiency over that baseline.
void compare_with(const std::string& name, Seconds makespan, RunResult& result);

}  // namespace overlap
