#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/core/input_keys.hpp"
#include "sim/run/config_folder.hpp"

namespace overlap {

/// Fields of a run config that vary together, and the values they take in turn.
struct Axis {
    std::vector<std::string> fields;  ///< paths into a run config: "params.chunks", "workload.gemm.m"
    /// One row for each value of the axis, one cell for each field; null: not set
    std::vector<std::vector<Json>> values;
};

/// The content of a sweep file. Each entry of "axes", each object of "zipped", and the list "points" is one axis, in
/// file order. Ranges and globs are expanded.
struct SweepFile {
    const ConfigFolder* folder = nullptr;  ///< where globs look
    std::string name, description;
    Json base = Json::object();
    std::vector<Axis> axes;
    std::vector<std::string> where;
};
InputKeys<SweepFile> sweep_keys();
/// Keys of a sweep as a part of another file, without "schema", "name" and "description".
inline InputKeys<SweepFile> space_keys() {
    return sweep_keys().subspan(3);
}
SweepFile read_sweep(ConfigObject& sweep, const ConfigFolder& folder, bool whole_file);
Json sweep_schema();
/// What the schemas of these keys refer to.
Json sweep_definitions();

/// Throws UserError, at `field` of `at`, if it is no path into a run config.
void require_field(const ConfigObject& at, const std::string& field);
/// Sets fields of a run config, each at its path; "what_if.a.b" sets the member "a.b" of "what_if". A whole
/// workload is set before fields of it, whatever their order in `values`. If fields of a named workload are
/// set, its name is replaced by its file `named(name)`.
void set_fields(Json& config, const Json& values, const std::function<Json(const std::string&)>& named);

}  // namespace overlap
