#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "sim/sweep/design_space.hpp"

namespace overlap {

/// How the values of several scenarios become one number. only: there is a single scenario.
enum class Aggregate { only, mean, geomean, median, min, max, sum, count };
inline const std::array<std::string, 8> aggregate_names{"only", "mean", "geomean", "median",
                                                        "min",  "max",  "sum",     "count"};

/// How much a figure says about the model. independent: no measurement of the figure's source went into the
/// device, its calibration or the scenario. same_source: another figure of that source did. fitted: the
/// figure itself did. qualitative: an order, a count or a law, and no magnitude that the source prints.
enum class CaseKind { independent, same_source, fitted, qualitative };
inline const std::array<std::string, 4> case_kind_names{"independent", "same_source", "fitted",
                                                        "qualitative"};

/// A number of the results.
struct PublishedNumber {
    std::string name;
    std::string where;  ///< expression over swept fields that selects scenarios; empty: all
    std::string value;  ///< expression over "<variant>.<field of a result>" ("<variant>.params.chunks" for a
                        ///< parameter that is a number) and swept fields
    Aggregate over = Aggregate::only;
};

/// What becomes of a conclusion of the source.
enum class ConclusionState { right, reversed, not_expressible };
inline const std::array<std::string, 3> conclusion_state_names{"right", "reversed", "not_expressible"};

/// A conclusion that the source draws. It holds where its number is above 0.
struct PublishedConclusion : PublishedNumber {
    ConclusionState state = ConclusionState::right;
    std::string reason;  ///< why it is reversed, or what is missing to ask
};

/// One published figure and its prediction.
struct PublishedCase : PublishedNumber {
    CaseKind kind = CaseKind::independent;
    double published = 0;
    std::string unit;
    double low = 0, high = 0;  ///< inclusive bounds of a prediction within tolerance
    bool known_gap = false;    ///< the prediction is outside the tolerance, for this reason
    std::string reason;
};

/// Figures of one source: configs/experiments/<system>/<name>.json (configs/schema/experiment.schema.json). Each
/// scenario runs once for each variant.
struct PublishedStatement {
    std::string name, description, source;
    Json space;  ///< the scenarios as in a sweep file
    /// Fields that each variant sets in addition to the scenario, by path
    std::map<std::string, Json> variants;
    /// Names for the fastest of the listed variants in a scenario; the first on a tie.
    std::map<std::string, std::vector<std::string>> fastest_of;
    std::vector<PublishedCase> cases;
    std::vector<PublishedConclusion> conclusions;
};

/// A published statement with the run configs that reproduce it.
struct PublishedExperiment : PublishedStatement {
    std::string system, file;
    DesignSpace scenarios;
};
Json experiment_schema();

/// Throws UserError unless the file is complete and valid.
PublishedExperiment read_experiment(const std::filesystem::path& file, const ConfigFolder& folder);

/// Files of one system, or of all systems if `system` is empty, sorted; `system` itself if it is a file.
/// Throws UserError with the nearest name.
std::vector<std::filesystem::path> experiment_files(const std::string& system, const ConfigFolder& folder);

}  // namespace overlap
