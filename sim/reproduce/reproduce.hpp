#pragma once

#include <string>
#include <vector>

#include "sim/reproduce/published_experiment.hpp"

namespace overlap {

/// A figure with its prediction.
struct ReproducedCase : PublishedCase {
    double predicted = 0;
    std::size_t scenarios = 0;  ///< number of scenarios that it covers
    /// Meant to hold the published value in nine of ten cases; none where errors of runs do not move the prediction.
    std::optional<Range> p90 = {};
    std::map<std::string, double> causes =
        {};  ///< of that width, as fractions of the prediction (Confidence::causes)
    std::string device = {}, run_kind = {};  ///< of the least certain of its runs

    bool inside_p90() const { return p90 && p90->low <= published && published <= p90->high; }
    bool inside() const { return low <= predicted && predicted <= high; }
    /// Whether the figure is within tolerance, or outside as a known gap.
    bool as_stated() const { return inside() != known_gap; }
};

/// A conclusion, and whether it holds here.
struct ReproducedConclusion : PublishedConclusion {
    bool holds = false;

    bool as_stated() const {
        return state == ConclusionState::not_expressible || holds == (state == ConclusionState::right);
    }
};

struct ReproducedExperiment {
    std::string system, name, description, source;
    std::vector<ReproducedCase> cases;
    std::vector<ReproducedConclusion> conclusions;

    bool as_stated() const;
};

/// Runs every scenario with every variant on all cores and evaluates the figures. Throws UserError for an
/// impossible run, an expression that gives no number, or a figure without scenarios. `what_if`: of all runs, beside
/// their own.
ReproducedExperiment reproduce(const PublishedExperiment& experiment, const ConfigFolder& folder,
                               const Json& what_if = Json::object());

/// markdown: a table of experiments, an empty line, a table of figures.
enum class ReproductionFormat { text, json, csv, markdown };
inline const std::array<std::string, 4> reproduction_format_names{"text", "json", "csv", "markdown"};
std::string render(const std::vector<ReproducedExperiment>& experiments, ReproductionFormat format,
                   const Remarks& remarks = {});

}  // namespace overlap
