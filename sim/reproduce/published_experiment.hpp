#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "sim/sweep/design_space.hpp"

namespace overlap {

/// How the values of several scenarios become one number. only: there is just one.
enum class Aggregate { only, mean, geomean, median, min, max, sum, count };
inline const std::array<std::string, 8> aggregate_names{"only", "mean", "geomean", "median",
                                                        "min",  "max",  "sum",     "count"};

/// One published figure, and how it is predicted.
struct PublishedCase {
    std::string name;
    std::string where;  ///< expression over swept fields: the scenarios it is about; empty: all
    std::string value;  ///< expression over "<variant>.<field of a result>" ("<variant>.params.chunks" for a
                        ///< parameter that is a number) and swept fields
    Aggregate over = Aggregate::only;
    double published = 0;
    std::string unit;
    double low = 0, high = 0;  ///< what a prediction within tolerance is, both inclusive
    bool known_gap = false;    ///< the prediction is outside, for this reason
    std::string reason;
};

/// Run configs that reproduce what one source states, and its figures:
/// configs/experiments/<system>/<name>.json (configs/schema/experiment.schema.json). Each scenario is run
/// once a variant.
struct PublishedExperiment {
    std::string system, name, description, source, file;
    DesignSpace scenarios;
    std::map<std::string, Json> variants;  ///< fields that each sets beyond the scenario, by path
    /// Names for the variant, of those listed, that takes a scenario the shortest time; the first of equals.
    std::map<std::string, std::vector<std::string>> fastest_of;
    std::vector<PublishedCase> cases;
};

/// Throws UserError on anything but a complete and valid file.
PublishedExperiment read_experiment(const std::filesystem::path& file, const ConfigFolder& folder);

/// Files of one system, or of all where `system` is empty, sorted; itself, where it is a file. Throws
/// UserError with the nearest name.
std::vector<std::filesystem::path> experiment_files(const std::string& system, const ConfigFolder& folder);

}  // namespace overlap
