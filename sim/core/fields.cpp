#include "sim/core/fields.hpp"

#include <algorithm>
#include <cmath>

namespace overlap {
namespace {

/// Whole numbers without a fraction.
Json written(double value) {
    if (value == std::floor(value) && std::abs(value) < 1e15) return std::llround(value);
    return value;
}

/// Whether the default lies below the range: 0, which switches something off.
bool has_off_value(const Key& key, double by_default) {
    const bool number = key.kind == Key::Kind::number || key.kind == Key::Kind::whole;
    return number && !key.required && key.otherwise == nullptr && key.like.empty() &&
           by_default < key.range.low;
}

/// Whether `other`, which `key` goes with, is in the group and not 0, which is as good as left out.
bool is_given(const ConfigObject& group, const Key& key, std::string_view other) {
    if (!group.has(other) || key.plain) return group.has(other);
    ConfigObject copy = group;  // reading a value counts as asking for it
    ConfigObject value = copy.object(std::string(other));
    return !value.has("value") || value.raw("value") != 0;
}

Json value_schema(const Key& key) {
    if (key.kind == Key::Kind::choice) return {{"enum", key.names}};
    if (key.kind == Key::Kind::flag) return {{"type", "boolean"}};
    Json value{{"type", "number"}};
    if (key.kind == Key::Kind::whole && key.plain) value["type"] = "integer";
    if (key.kind == Key::Kind::whole && !key.plain) value["multipleOf"] = 1.0;  // 304.0 is no "integer"
    if (key.range.low == positive.low)
        value["exclusiveMinimum"] = 0;
    else
        value["minimum"] = written(key.range.low);
    if (key.range.high != Range{}.high) value["maximum"] = written(key.range.high);
    return value;
}

/// ConfigObject::sourced of a count; a fraction is refused with the two whole numbers next to it, since a
/// factor of a what-if makes fractions ("1.2x" of 304).
double sourced_whole(ConfigObject& config, const std::string& key, Range range) {
    const double value = config.sourced(key, range);
    if (value != std::floor(value))
        config.fail(key + "/value", "is " + Json(value).dump() + ", but must be a whole number (" +
                                        std::to_string(std::llround(std::floor(value))) + " or " +
                                        std::to_string(std::llround(std::ceil(value))) + ")");
    return value;
}

}  // namespace

bool is_asked_for(const ConfigObject& group, const Key& key) {
    if (!key.with.empty() && !is_given(group, key, key.with))
        return group.has(key.with) && group.has(key.key);
    if (!key.without.empty() && is_given(group, key, key.without)) return false;
    return key.required || group.has(key.key);
}

namespace {

double read_in_range(ConfigObject& group, const Key& key, Range range) {
    const std::string name(key.key);
    switch (key.kind) {
        case Key::Kind::whole:
            if (!key.plain) return sourced_whole(group, name, range);
            return static_cast<double>(
                group.integer(name, std::llround(range.low), std::llround(range.high)));
        case Key::Kind::choice:
            return static_cast<double>(key.plain ? group.choice(name, key.names)
                                                 : group.sourced_choice(name, key.names));
        case Key::Kind::flag:
            return group.boolean(name) ? 1 : 0;
        case Key::Kind::number:
            break;
    }
    return key.plain ? group.number(name, range) : group.sourced(name, range);
}

}  // namespace

double read_value(ConfigObject& group, const Key& key, double by_default) {
    if (!has_off_value(key, by_default)) return read_in_range(group, key, key.range);
    const double value = read_in_range(group, key, {by_default, key.range.high});
    if (value != by_default && value < key.range.low)
        group.fail(std::string(key.key) + (key.plain ? "" : "/value"),
                   "is " + written(value).dump() + ", expected " + written(by_default).dump() +
                       ", the default, or a number from " + written(key.range.low).dump() + " to " +
                       written(key.range.high).dump());
    return value;
}

Json written_value(const Key& key, double value) {
    if (key.kind == Key::Kind::choice) return key.names[static_cast<std::size_t>(value)];
    if (key.kind == Key::Kind::flag) return value != 0;
    if (key.kind == Key::Kind::whole) return std::llround(value);
    return value;
}

std::string description_of(const Key& key, double by_default) {
    std::string text = key.doc;
    const bool of_links =
        std::ranges::any_of(rates_of_links, [&](std::string_view rate) { return key.follows == rate; });
    if (of_links)
        text += " No what-if of links moves it; sim new device scales it with their rate.";
    else if (!key.follows.empty())
        text += " Follows " + std::string(key.follows) + ".";
    if (!key.with.empty()) text += " Only with " + std::string(key.with) + '.';
    if (!key.without.empty()) text += " Only without " + std::string(key.without) + '.';
    if (key.required) return text;
    if (key.otherwise != nullptr) return text + " Default: " + key.otherwise + '.';
    if (!key.like.empty()) return text + " Default: as " + std::string(key.like) + '.';
    if (key.kind == Key::Kind::choice)
        return text + " Default: " + key.names[static_cast<std::size_t>(by_default)] + '.';
    if (key.kind == Key::Kind::flag) return text + (by_default != 0 ? " Default: true." : " Default: false.");
    return text + " Default: " + written(by_default).dump() + '.';
}

Json sourced_schema(const Key& key, const std::string& description, const std::string& definition) {
    return {{"description", description},
            {"allOf", {{{"$ref", "#/definitions/" + definition}}}},
            {"properties", {{"value", value_schema(key)}}}};
}

Json field_schema(const Key& key, double by_default, const std::string& definition) {
    const std::string description = description_of(key, by_default);
    Json schema{{"description", description}};
    if (key.plain)
        schema.update(value_schema(key));
    else
        schema = sourced_schema(key, description, definition);
    if (key.required || key.otherwise != nullptr) return schema;
    if (!key.like.empty()) {
        schema["x-default-as"] = key.like;
        return schema;
    }
    Json& value = key.plain ? schema : schema["properties"]["value"];
    if (has_off_value(key, by_default)) {
        value["anyOf"] = {{{"const", written(by_default)}}, {{"minimum", value["minimum"]}}};
        value.erase("minimum");
    }
    const bool number = key.kind == Key::Kind::number;
    value["default"] = number ? written(by_default) : written_value(key, by_default);
    return schema;
}

Json member_schema(const Json& root, const Json& schema, const Json& json, const std::string& key) {
    if (!schema.is_object()) return {};
    static const Json::json_pointer type("/if/properties/type/const");
    for (const Json& rule : schema.value("allOf", Json::array()))  // see schema_by_type
        if (json.contains("type") && rule.contains(type) && rule[type] == json["type"])
            return member_schema(root, rule["then"], {}, key);
    if (schema.contains("$ref")) {
        const auto target = schema["$ref"].get<std::string>();
        return member_schema(root, root["definitions"][target.substr(target.rfind('/') + 1)], json, key);
    }
    if (schema.contains("properties") && schema["properties"].contains(key)) return schema["properties"][key];
    if (schema.contains("items")) return schema["items"];
    return schema.value("additionalProperties", Json()).is_object() ? schema["additionalProperties"] : Json();
}

Json schema_by_type(const std::string& description, const std::vector<Json>& kinds) {
    Json names = Json::array(), rules = Json::array();
    for (Json kind : kinds) {
        Json& type = kind["properties"]["type"];
        names.push_back(type["const"]);
        const Json rule{{"properties", {{"type", type}}}, {"required", {"type"}}};
        type = {{"description", kind["description"]}, {"const", names.back()}};
        rules.push_back({{"if", rule}, {"then", kind}});
    }
    return {{"type", "object"},
            {"required", {"type"}},
            {"properties", {{"type", {{"description", description}, {"enum", names}}}}},
            {"allOf", rules}};
}

Json list_schema(const std::string& description, const Json& items) {
    return {{"description", description}, {"type", "array"}, {"minItems", 1}, {"items", items}};
}

Json map_schema(const std::string& description, const Json& names, const Json& values, int least) {
    Json map{{"description", description}, {"type", "object"}};
    if (least > 0) map["minProperties"] = least;
    map.update({{"propertyNames", names}, {"additionalProperties", values}});
    return map;
}

Json text_schema(const std::string& description, int least) {
    return {{"description", description}, {"type", "string"}, {"minLength", least}};
}

Json name_schema(const std::string& description, const std::string& ending) {
    return {
        {"description", description}, {"type", "string"}, {"pattern", "^[a-z0-9][a-z0-9_]*" + ending + "$"}};
}

Json object_schema(const std::string& description) {
    return {{"description", description},
            {"type", "object"},
            {"additionalProperties", false},
            {"required", Json::array()},
            {"properties", Json::object()}};
}

Json file_schema(const std::string& title, const std::string& description, int version) {
    Json schema{{"$schema", "http://json-schema.org/draft-07/schema#"}, {"title", title}};
    schema.update(object_schema(description));
    schema["properties"]["schema"] = {{"description", "Version of this file format; the newest if left out."},
                                      {"const", version}};
    return schema;
}

Json named_file_schema(const std::string& title, const std::string& description, int version) {
    Json schema = file_schema(title, description, version);
    schema["properties"]["name"] = name_schema("The file's name without .json.");
    schema["properties"]["description"] = text_schema("What this is, in a sentence or two.", 10);
    schema["required"].insert(schema["required"].end(), {"name", "description"});
    return schema;
}

}  // namespace overlap
