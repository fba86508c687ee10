#include "sim/topology/device_schema.hpp"

#include <utility>

#include "sim/core/file_version.hpp"
#include "sim/core/ranges.hpp"
#include "sim/topology/device_structure.hpp"

namespace overlap {
namespace {

/// A number whose key has no field of its own: one of many of its kind.
Json number_schema(const std::string& key, Range range, const std::string& doc,
                   const std::string& definition) {
    Key number;
    number.key = key;
    number.range = range;
    return sourced_schema(number, doc, definition);
}

/// Describes an object of a device file. `required`: else a value may stand in another file.
class DeviceSchema {
public:
    DeviceSchema(Json& object, std::string definition, bool required)
        : object_(object), definition_(std::move(definition)), required_(required) {}

    template <class T>
    void fields(const T&) {
        add_fields<T>(object_, definition_, required_);
    }
    void text(const std::string& key, const char* doc, const std::string&) {
        object_["required"].push_back(key);
        add(key, text_schema(doc, 1));
    }
    void name_if_any(const std::string& key, const char* doc, const std::string&) {
        add(key, name_schema(doc));
    }
    template <class Set>
    void number(const std::string& key, const std::string& like, Range range, const char* doc, Set&&) {
        add(key, number_schema(like, range, doc, definition_));
    }
    template <class Body>
    void group(const std::string& key, const char* doc, Body&& body) {
        object_["required"].push_back(key);
        group_if_any(key, doc, body);
    }
    template <class Body>
    void group_if_any(const std::string& key, const char* doc, Body&& body) {
        Json object = object_schema(doc);
        DeviceSchema inside(object, definition_, true);
        body(inside);
        add(key, object);
    }
    void calibrated(std::size_t group, DeviceSpec&) {
        if (!may_be_left_out(group)) object_["required"].push_back(calibrated_groups[group]);
        add(calibrated_groups[group], calibrated_group_schema(calibrated_groups[group], definition_));
    }
    void provenance() {
        add("provenance",
            {{"description", "By the name of each fit: what was fitted, on which rows, with which errors."},
             {"type", "object"}});
    }
    template <std::size_t N, class Body>
    void each(const std::array<std::string, N>& names, const std::string&, Body&& body) {
        for (const std::string& name : names) body(*this, name);
    }
    template <class Body>
    void counted(const std::string& key, const char* doc, bool required, std::int64_t, std::int64_t,
                 const std::string&, Body&& body) {
        if (required) object_["required"].push_back(key);
        Json any = object_schema("");
        DeviceSchema inside(any, definition_, true);
        body(inside, "any", 1);
        add(key, map_schema(doc, {{"pattern", "^[1-9][0-9]*$"}}, any["properties"]["any"]));
    }
    void times(const std::vector<std::pair<Bytes, Seconds>>&, const Key& error) {
        const auto numbers = [](const char* doc) {
            return Json{{"description", doc}, {"type", "array"}, {"items", {{"type", "number"}}}};
        };
        object_["required"].insert(object_["required"].end(), {"bytes", "us"});
        add("bytes", numbers("Bytes of a rank's operand, rising."));
        add("us", numbers("Time of each."));
        add(std::string(error.key), field_schema(error, 0, definition_));
    }

private:
    void add(const std::string& key, const Json& schema) { object_["properties"][key] = schema; }

    Json& object_;
    std::string definition_;
    bool required_;
};

}  // namespace

Json calibrated_group_schema(const std::string& group, const std::string& definition) {
    const auto place = static_cast<std::size_t>(place_of(calibrated_groups, group));
    Json schema = object_schema(calibrated_docs[place]);
    DeviceSchema at(schema, definition, false);
    DeviceSpec any;
    visit_calibrated(at, place, any);
    schema.erase("required");
    return schema;
}

// clang-format off
Json value_definitions() {
    Json sourced = object_schema("A value with its source. A fitted value says how well it was fitted.");
    sourced["required"] = {"value", "source"};
    Json names = Json::array();
    for (const Unit& unit : units) names.push_back(unit.name);
    sourced["properties"] = {
        {"value", Json::object()},
        {"source", {{"description", "Where the value comes from, one line: data sheet; paper and table; repository, "
                                    "commit and file; 'derived: arithmetic'; 'estimate: reason'."},
                    {"type", "string"}, {"minLength", 8}, {"pattern", "^[^\\n]*\\S[^\\n]*$"}}},
        {"standard_error", {{"description", "Standard error of the fit, in the value's unit."},
                            {"type", "number"}, {"minimum", 0}}},
        {"residual_pct", {{"description", "Mean |error| of the rows fitted to, weighted by how much each depends on "
                                          "this value, percent."}, {"type", "number"}, {"minimum", 0}}},
        {"unit", {{"description", "Unit of the value, as the key's ending says it; 1 for a share or a count."},
                  {"enum", names}}},
        {"file", text_schema("Measurements it was fitted to, from the top of the repository.", 1)},
        {"date", {{"description", "Day of the measurements."},
                  {"type", "string"}, {"pattern", "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"}}}};
    for (const char* key : {"residual_pct", "unit", "file", "date"}) sourced["dependencies"][key] = {"standard_error"};
    Json fitted{{"description", "A value that was fitted to measurements."},
                {"allOf", {{{"$ref", "#/definitions/sourced"}}}},
                {"required", {"unit", "standard_error", "residual_pct", "file", "date"}}};
    return {{"sourced", sourced}, {"fitted", fitted}};
}
// clang-format on

Json device_schema() {
    Json schema = named_file_schema(
        "Device",
        "One GPU: what it is and what it does. A number is {\"value\", \"source\"}; its unit is in the key. Keys of "
        "launch, dma, copy_kernel, interference, variation and energy may be in configs/calibrations instead: together "
        "both files are complete.",
        newest_version("device"));
    DeviceSchema at(schema, "sourced", true);
    DeviceSpec any;
    visit_device(at, any);
    schema["definitions"] = value_definitions();
    return schema;
}

}  // namespace overlap
