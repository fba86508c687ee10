#include "sim/sweep/axes.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "sim/core/numbers.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/run/run_config.hpp"
#include "sim/run/scenario.hpp"
#include "sim/schedules/parameters.hpp"

namespace overlap {
namespace {

constexpr std::size_t most_values = 1'000'000;  // per axis, whose values are kept in memory

/// "workload.operators.0.bytes"; the reader of the run config checks whether that operator exists.
bool of_operator(std::string_view field) {
    constexpr std::string_view operators = "workload.operators.", digits = "0123456789",
                               letters = "abcdefghijklmnopqrstuvwxyz_";
    if (!field.starts_with(operators)) return false;
    field.remove_prefix(operators.size());
    const std::size_t dot = field.find_first_not_of(digits);
    return dot != 0 && dot != std::string_view::npos && field[dot] == '.' && dot + 1 < field.size() &&
           field.find_first_not_of(letters, dot + 1) == std::string_view::npos;
}

/// Allowed paths, besides any path below "what_if" or to a field of an operator.
std::vector<std::string> known_fields() {
    std::vector<std::string> fields = swept_keys();
    for (const std::string& path : pair_paths()) fields.push_back("workload." + path);
    for (const char* key : {"model", "tokens", "tp", "ep", "dp", "fsdp", "sequence_parallel", "phase",
                            "dtype", "sequence", "imbalance"})  // of a layer of a model
        fields.push_back(std::string("workload.") + key);
    for (const ParameterInfo& parameter : schedule_parameters()) fields.push_back("params." + parameter.name);
    return fields;
}

/// {"from": 1, "to": 16, "by": 1} or {"from": 1, "to": 64, "times": 2}.
struct AxisRange {
    double from = 0, to = 0, by = 0, times = 0;
};
// clang-format off
InputKeys<AxisRange> range_keys() {
    using A = AxisRange;
    static const std::vector<InputKey<A>> keys{
        field<&A::from>("from", "First value.").plain_in({}),
        {"to", number_from(0, "Not above this, which is not below 'from'."), [](ConfigObject& from, const std::string& key, A& to) { to.to = from.number(key, {to.from, 1e300}); }},
        field<&A::by>("by", "Step of a linear range.").plain_in(positive).or_else("none"),
        field<&A::times>("times", "Factor of a geometric range.").plain_in({1 + 1e-6, 1e300}).or_else("none")};
    return keys;
}
// clang-format on

/// Whole numbers stay whole.
std::vector<Json> range_values(ConfigObject range, const ConfigObject& at, const std::string& field) {
    const bool whole = range.raw("from").is_number_integer();
    const auto [from, to, by, times] = read_keys<AxisRange>(range, range_keys());
    const bool geometric = times > 0;
    if (geometric == (by > 0))
        at.fail(field, "is a range, which needs one of 'by' (linear) and 'times' (geometric)");
    const double step = geometric ? times : by;
    if (geometric && from <= 0) at.fail(field, "is a geometric range, which has to begin above 0");
    std::vector<Json> values;
    // Each value is computed from the start, so that errors do not accumulate.
    for (std::size_t i = 0;; ++i) {
        const double value =
            geometric ? from * std::pow(step, static_cast<double>(i)) : from + step * static_cast<double>(i);
        if (value > to * (1 + 1e-12)) break;
        if (i == most_values)
            at.fail(field, "is a range of more than " + std::to_string(most_values) + " values");
        const double rounded = std::round(value);
        // Larger values stay unchanged; the reader of the field refuses them.
        constexpr double beyond_integers = 9223372036854775808.0;  // 2^63
        const bool as_whole = whole && std::abs(value - rounded) <= 1e-9 * std::abs(value) &&
                              std::abs(rounded) < beyond_integers;
        values.push_back(as_whole ? Json(static_cast<std::int64_t>(rounded)) : Json(value));
    }
    return values;
}

/// {"files": ["ficco_g*"]}: matching names in the folder of the field's kind; where there are none, matching files
/// beside the sweep's; in natural order.
std::vector<Json> file_values(ConfigObject files, const ConfigObject& at, const std::string& field,
                              const ConfigFolder& folder) {
    const std::vector<std::string> patterns =
        files.raw("files").is_string() ? std::vector{files.text("files")} : files.texts("files");
    files.finish();
    if (field != "topology" && field != "workload" && field != "plan")
        at.fail(field, "takes no 'files' (allowed for: topology, workload, plan)");
    std::vector<Json> values;
    for (const std::string& pattern : patterns) {
        std::vector<std::string> names;
        if (field != "plan") names = folder.names(field == "topology" ? "topologies" : "workloads");
        const auto rest = std::remove_if(names.begin(), names.end(), [&](const std::string& name) {
            return fnmatch(pattern.c_str(), name.c_str(), 0) != 0 &&
                   fnmatch(pattern.c_str(), (name + ".json").c_str(), 0) != 0;
        });
        std::vector<std::string> found(names.begin(), rest);
        std::ranges::sort(found, [](const std::string& a, const std::string& b) {
            return strverscmp(a.c_str(), b.c_str()) < 0;
        });
        if (found.empty()) found = folder.files_beside(pattern);
        if (found.empty())
            at.fail(field, "has the pattern " + in_quotes(pattern) + suggestion(pattern, names));
        values.insert(values.end(), found.begin(), found.end());
    }
    return values;
}

std::vector<Json> values_of(ConfigObject& axes, const std::string& field, const ConfigFolder& folder) {
    require_field(axes, field);
    const Json& given = axes.raw(field);
    std::vector<Json> values;
    if (given.is_array()) {
        values.assign(given.begin(), given.end());
    } else if (given.is_object() && given.contains("files")) {
        values = file_values(axes.object(field), axes, field, folder);
    } else if (given.is_object() && given.contains("from")) {
        values = range_values(axes.object(field), axes, field);
    } else {
        axes.fail(field, "is " + shown(given) +
                             ", expected a list, {\"from\", \"to\", \"by\" or \"times\"} or {\"files\"}");
    }
    if (values.empty()) axes.fail(field, "has no value");
    return values;
}

std::vector<Json> distinct_values(ConfigObject& axes, const std::string& field, const ConfigFolder& folder) {
    std::vector<Json> values = values_of(axes, field, folder);
    std::set<std::string> seen;
    for (const Json& value : values)
        if (!seen.insert(value.dump()).second) axes.fail(field, "has the value " + shown(value) + " twice");
    return values;
}

Axis zipped_axis(ConfigObject group, const ConfigFolder& folder) {
    Axis axis;
    std::string longest;
    for (const std::string& field : group.keys()) {
        std::vector<Json> values = values_of(group, field, folder);
        if (axis.fields.empty()) axis.values.resize(values.size());
        if (values.size() != axis.values.size())
            group.fail(field, "has " + std::to_string(values.size()) + " values, but '" +
                                  axis.fields.front() + "', with which it is zipped, has " +
                                  std::to_string(axis.values.size()));
        axis.fields.push_back(field);
        for (std::size_t i = 0; i < values.size(); ++i) axis.values[i].push_back(std::move(values[i]));
    }
    if (axis.fields.empty()) group.fail("", "is empty, expected fields to vary together");
    std::set<std::string> seen;
    for (const std::vector<Json>& row : axis.values)
        if (!seen.insert(Json(row).dump()).second)
            group.fail("", "has the values " + shown(Json(row)) + " twice");
    return axis;
}

/// Values of an explicit list; a point may leave out fields that other points set.
Axis listed_axis(std::vector<ConfigObject> points) {
    Axis axis;
    for (const ConfigObject& point : points)
        for (const std::string& field : point.keys()) {
            require_field(point, field);
            if (!contains(axis.fields, field)) axis.fields.push_back(field);
        }
    for (ConfigObject& point : points) {
        std::vector<Json>& row = axis.values.emplace_back();
        for (const std::string& field : axis.fields)
            row.push_back(point.has(field) ? point.raw(field) : Json(nullptr));
    }
    return axis;
}

/// The member of an object (created if missing) or the item of a list. `path` led to `json`.
Json& member(Json& json, const std::string& name, const std::string& path) {
    if (json.is_object() || json.is_null()) return json[name];
    if (!json.is_array()) throw UserError(path + ": is " + shown(json) + ", expected an object");
    const auto number = parsed<std::size_t>(name);
    if (!number || *number >= json.size())
        throw UserError(path + ": has no operator " + in_quotes(name) + ", there are " +
                        std::to_string(json.size()));
    return json[*number];
}

void set_field(Json& config, const std::string& path, const Json& value) {
    const std::string root = "what_if.";
    if (path.starts_with(root)) {
        member(member(config, "what_if", ""), path.substr(root.size()), "/what_if") = value;
        return;
    }
    Json* at = &config;
    std::string pointer;
    for (const std::string& name : split(path, '.')) {
        at = &member(*at, name, pointer);
        pointer += "/" + name;
    }
    *at = value;
}

/// "qkv, m 8192": the name of a workload tells what was changed in it.
void add_to_name(Json& workload, const std::string& field, const Json& value) {
    if (!workload.is_object() || !workload.contains("name") || !workload["name"].is_string()) return;
    const std::string changed = field.substr(std::string_view("workload.").size());
    const std::string short_name =
        changed.starts_with("gemm.") ? changed.substr(std::string_view("gemm.").size()) : changed;
    workload["name"] = workload["name"].get<std::string>() + ", " + short_name + " " + unquoted(value);
}

/// Refuses two fields of which one is a part of the other. `workload` may be swept beside its fields: they change each
/// value of it.
void require_no_overlap(const ConfigObject& sweep, const std::vector<std::string>& fields) {
    for (const std::string& outer : fields)
        for (const std::string& inner : fields)
            if (outer == inner ? std::ranges::count(fields, outer) > 1
                               : outer != "workload" && inner.starts_with(outer + "."))
                sweep.fail("", outer == inner
                                   ? "sweeps '" + outer + "' twice"
                                   : "sweeps '" + outer + "' and '" + inner + "', which is a part of it");
}

// clang-format off
Json swept_field_schema() {
    std::string fields;
    for (const std::string& field : known_fields())
        for (const char c : field + '|') fields += c == '.' ? "\\." : std::string(1, c);
    return {{"description", "A path into a run config."}, {"type", "string"},
            {"pattern", "^(" + fields + R"(workload\.operators\.[0-9]+\.[a-z_]+|what_if\.(topology|device)\..+)$)"}};
}
// clang-format on

}  // namespace

void require_field(const ConfigObject& at, const std::string& field) {
    if (field.starts_with("what_if.") || of_operator(field)) return;
    const std::vector<std::string> known = known_fields();
    if (contains(known, field)) return;
    // The nearest path by its last part, if one matches: "chunks" stands for "params.chunks".
    for (const std::string& candidate : known)
        if (candidate.ends_with("." + field))
            at.fail(field, "is no field of a run config (did you mean '" + candidate + "'?)");
    at.fail(field, "is no field of a run config" + suggestion(field, known));
}

// clang-format off
InputKeys<SweepFile> sweep_keys() {
    using S = SweepFile;
    const Json path{{"$ref", "#/definitions/field"}}, values{{"$ref", "#/definitions/values"}};
    Json fields = map_schema("", path, values, 1), point{{"type", "object"}, {"propertyNames", path}};
    fields.erase("description");
    static const std::vector<InputKey<S>> keys{
        version_key<S>("sweep"), text_key<S>("name", &S::name, "As the file is called, without .json, which it is if left out.").optional(),
        text_key<S>("description", &S::description, "What is swept, and for what.").optional(),
        object_key<S>("base", &S::base, {{"$ref", "#/definitions/base"}}).optional(),
        InputKey<S>("axes", map_schema("Values of each field in turn; all combinations, the last axis fastest.", path, values), [](ConfigObject& from, const std::string& key, S& to) {
            ConfigObject object = from.object(key);
            for (const std::string& field : object.keys()) {
                Axis& axis = to.axes.emplace_back(Axis{{field}, {}});
                for (Json& value : distinct_values(object, field, *to.folder)) axis.values.push_back({std::move(value)});
            }
        }).optional(),
        InputKey<S>("zipped", {{"description", "Groups of fields that vary together: the first values of all, then the second. Each group is one axis."}, {"type", "array"}, {"items", fields}},
            [](ConfigObject& from, const std::string& key, S& to) {
                for (ConfigObject& group : from.objects(key)) to.axes.push_back(zipped_axis(group, *to.folder));
            }).optional(),
        InputKey<S>("points", list_schema("An explicit list; together it is one axis. A point need not set what others set.", point), [](ConfigObject& from, const std::string& key, S& to) {
            std::vector<ConfigObject> points = from.objects(key);
            if (points.empty()) from.fail(key, "has no point");
            to.axes.push_back(listed_axis(std::move(points)));
        }).optional(),
        texts_key<S>("where", &S::where, "Expressions that hold for every point, over gpus, gpus_per_node, nodes, topology, schedule, workload, collective, dtype, engine, gemm.m, "
            "gemm.n, gemm.k, parameters by name (chunks, agent, ...) and swept fields of what_if and of workload.operators.").optional()};
    return keys;
}

Json sweep_definitions() {
    Json range = keys_schema("From 'from' up to 'to', 'by' a step or 'times' a factor.", range_keys());
    range["oneOf"] = {{{"required", {"by"}}}, {{"required", {"times"}}}};
    const Json text{{"type", "string"}};
    Json files = object_schema("Names in configs/ that match, of topologies or workloads; or files beside this one, also of plans."), base = object_schema("Fields of a run config (run.schema.json) that all points have, unless an axis sets them.");
    files["required"] = {"files"};
    files["properties"]["files"] = {{"description", "A pattern with * and ?, or several."}, {"oneOf", {text, {{"type", "array"}, {"minItems", 1}, {"items", text}}}}};
    base["properties"] = run_schema()["properties"];
    base["properties"]["workload"] = Json::object();  // also a layer of a model
    return {{"field", swept_field_schema()},
            {"values", {{"oneOf", {{{"description", "The values themselves."}, {"type", "array"}, {"minItems", 1}, {"uniqueItems", true}}, range, files}}}},
            {"base", base}};
}

Json sweep_schema() {
    Json schema = file_of_keys("Sweep", "A design space for 'sim sweep': every combination of the values of 'axes', 'zipped' and 'points' is a run config.", sweep_keys());
    schema["anyOf"] = {{{"required", {"axes"}}}, {{"required", {"zipped"}}}, {{"required", {"points"}}}};
    schema["definitions"] = sweep_definitions();
    return schema;
}
// clang-format on

SweepFile read_sweep(ConfigObject& sweep, const ConfigFolder& folder, bool whole_file) {
    SweepFile read;
    read.folder = &folder;
    read = read_keys(sweep, whole_file ? sweep_keys() : space_keys(), read);
    std::vector<std::string> fields;
    for (const Axis& axis : read.axes) append(fields, axis.fields);
    require_no_overlap(sweep, fields);
    return read;
}

void set_fields(Json& config, const Json& values, const std::function<Json(const std::string&)>& named) {
    if (values.contains("workload")) config["workload"] = values.at("workload");
    const bool changes_workload = std::ranges::any_of(
        values.items(), [](const auto& item) { return item.key().starts_with("workload."); });
    if (changes_workload) {
        if (!config.contains("workload")) config["workload"] = default_workload;
        Json& workload = config["workload"];
        if (workload.is_string()) {  // the file's contents, so that its fields can be changed
            workload = named(workload.get<std::string>());
            for (const char* key : {"description", "source"}) workload.erase(key);
        }
    }
    for (const auto& [field, value] : values.items())
        if (field != "workload") {
            set_field(config, field, value);
            if (field.starts_with("workload.")) add_to_name(config["workload"], field, value);
        }
}

}  // namespace overlap
