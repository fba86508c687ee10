#pragma once

#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/config_reader.hpp"
#include "sim/core/error_summary.hpp"
#include "sim/core/timeline.hpp"
#include "sim/report/comparison/verdict.hpp"
#include "sim/report/page/page.hpp"
#include "sim/report/run/result.hpp"

namespace overlap {

/// The earliest measured task whose end is off by more than a fiftieth of the makespan.
struct Divergence {
    std::string task;
    int gpu = 0;
    Seconds measured_start, measured_end, predicted_start, predicted_end;
};

/// Tasks of a case that are in both timelines, matched by GPU and name.
struct TaskErrors {
    std::map<std::string, std::vector<double>> by_kind;  ///< errors of durations
    std::size_t only_measured = 0, only_predicted = 0;   ///< tasks without a partner
    std::optional<Divergence> first;
};

/// How runs of a measurement differ.
struct MeasuredRuns {
    double spread = 0;  ///< largest |median of a run / median of all − 1|
    std::vector<Seconds> medians;
};

/// Empty if no spans were recorded.
struct ComparedSpans {
    Timeline measured, predicted;
    std::optional<TaskErrors> errors;
};

struct ComparedCase {
    std::string origin;
    std::string scenario;  ///< machine and workload, for reports
    std::string key;       ///< exact identity of the scenario, shared by all its schedules
    std::string name;      ///< schedule and its parameters
    /// Labels that cases are grouped by: "system", "schedule", "agent", "transfer", "operator", "size", "run".
    std::map<std::string, std::string> labels;
    Seconds measured, predicted, predicted_p10, predicted_p90;
    MeasuredRuns runs;
    std::size_t seeds = 1;
    double error = 0;                        ///< predicted / measured − 1
    std::optional<CaseTolerance> tolerance;  ///< if the case claims one
    ComparedSpans spans;
    Confidence confidence = {};

    /// Whether the measurement is where nine of ten are expected; none where that is not known.
    std::optional<bool> inside_p90() const {
        const std::optional<double> p90 = confidence.p90();
        return p90 ? std::optional(std::abs(std::log1p(error)) <= *p90) : std::nullopt;
    }
};

/// Schedules of one scenario, ranked by measured and by predicted time.
struct RankedScenario {
    std::string name;
    std::size_t cases = 0;
    std::string measured_best, predicted_best;
    double regret = 0;                       ///< measured time of the predicted best / measured best − 1
    std::optional<double> rank_correlation;  ///< Spearman's; for three cases and more
};

struct RankingSummary {
    std::size_t scenarios = 0;    ///< with two cases or more
    double best_within_2pct = 0;  ///< fraction of scenarios with a regret of at most 2 %
    double mean_regret = 0;
    double rank_correlation = 0;  ///< mean over the scenarios with a correlation
};

/// Cases with an interval that is meant to hold nine of ten measurements, and those that are in it.
struct NineOfTen {
    std::size_t judged = 0, inside = 0;
};

struct GroupErrors {
    std::string key, value;
    ErrorSummary errors;
    NineOfTen nine_of_ten = {};
};

struct Comparison {
    std::vector<ComparedCase> cases;
    std::vector<std::string> not_predicted;  ///< "origin: why"
    ErrorSummary all;
    NineOfTen nine_of_ten = {};
    std::vector<GroupErrors> groups;
    std::vector<RankedScenario> scenarios;
    RankingSummary ranking;
    std::map<std::string, ErrorSummary> by_task_kind;
    /// For cases with several simulated orders: fraction of measured runs within the predicted p10 to p90.
    std::optional<double> runs_within_p10_p90;
    std::vector<Verdict> verdicts;
    Remarks remarks = {};
};

/// The cases, those with the largest |error| first.
std::vector<const ComparedCase*> by_error(const Comparison& comparison);
/// How each kind of price came about, and in how many cases.
std::map<std::string, std::size_t> prices_of(const Comparison& comparison);
std::string to_text(const Comparison& comparison);
Json to_json(const Comparison& comparison);
/// A header, and one row for each case.
std::string to_csv(const Comparison& comparison);
/// Scatter plot, histogram, tables, and timelines of each case with spans.
Page page_of(const Comparison& comparison);

/// Parts of such a page: all of it; and measured and predicted bars of one case.
void add_comparison(Page& page, const Comparison& comparison);
void add_timelines(Page& page, const ComparedCase& one);

}  // namespace overlap
