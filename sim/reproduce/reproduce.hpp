#pragma once

#include <string>
#include <vector>

#include "sim/reproduce/published_experiment.hpp"

namespace overlap {

/// A case and what the simulator says.
struct ReproducedCase {
    PublishedCase published;
    double predicted = 0;
    std::size_t scenarios = 0;  ///< that it is about

    bool inside() const { return published.low <= predicted && predicted <= published.high; }
    /// Within tolerance, or outside where that is known.
    bool as_stated() const { return inside() != published.known_gap; }
};

struct ReproducedExperiment {
    std::string system, name, description, source;
    std::vector<ReproducedCase> cases;
};

/// Runs every scenario with every variant, on all cores, and evaluates the cases. Throws UserError for a run
/// that can't be, an expression that gives no number, or a case about no scenario.
ReproducedExperiment reproduce(const PublishedExperiment& experiment, const ConfigFolder& folder);

/// summary: a line an experiment, markdown: a line a case; both are tables in Markdown.
enum class ReproductionFormat { text, json, csv, markdown, summary };
inline const std::array<std::string, 5> reproduction_format_names{"text", "json", "csv", "markdown",
                                                                  "summary"};
std::string render(const std::vector<ReproducedExperiment>& experiments, ReproductionFormat format);

}  // namespace overlap
