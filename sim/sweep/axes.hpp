#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/run/config_folder.hpp"

namespace overlap {

/// Fields of a run config that vary together, and the values they take in turn.
struct Axis {
    std::vector<std::string> fields;  ///< paths into a run config: "params.chunks", "workload.gemm.m"
    /// One row for each value of the axis, one cell for each field; null: not set
    std::vector<std::vector<Json>> values;
};

/// The axes of a sweep file in file order: each entry of "axes", each object of "zipped", and the list
/// "points" is one axis. Ranges and globs are expanded. Throws UserError.
std::vector<Axis> read_axes(ConfigObject& sweep, const ConfigFolder& folder);

/// Throws UserError, at `field` of `at`, if it is no path into a run config.
void require_field(const ConfigObject& at, const std::string& field);
/// Regular expression of the paths into a run config.
std::string field_pattern();
/// Sets fields of a run config, each at its path; "what_if.a.b" sets the member "a.b" of "what_if". A whole
/// workload is set before fields of it, whatever their order in `values`. If fields of a named workload are
/// set, its name is replaced by its file `named(name)`.
void set_fields(Json& config, const Json& values, const std::function<Json(const std::string&)>& named);

}  // namespace overlap
