#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/run/config_folder.hpp"

namespace overlap {

/// Fields of a run config that vary together, and the values they take in turn.
struct Axis {
    std::vector<std::string> fields;        ///< paths into a run config: "params.chunks", "workload.gemm.m"
    std::vector<std::vector<Json>> values;  ///< a row a value of the axis, a cell a field; null: not set
};

/// The axes of a sweep file in the order of the file: every entry of "axes" is one, every object of "zipped"
/// is one, and the list "points" is one. Ranges and globs are expanded. Throws UserError.
std::vector<Axis> read_axes(ConfigObject& sweep, const ConfigFolder& folder);

/// Throws UserError, at `field` of `at`, unless it is a path into a run config.
void require_field(const ConfigObject& at, const std::string& field);
/// Sets fields of a run config, each at its path; "what_if.a.b" sets the member "a.b" of "what_if". A whole
/// workload is set before fields of it, whatever their order in `values`. A workload whose fields are set and
/// that is named is replaced by `named(name)`, its file.
void set_fields(Json& config, const Json& values, const std::function<Json(const std::string&)>& named);

}  // namespace overlap
