#include "sim/core/fields.hpp"

#include <cmath>

#include "sim/core/whole_number.hpp"

namespace overlap {
namespace {

/// Whole numbers without a fraction.
Json written(double value) {
    if (value == std::floor(value) && std::abs(value) < 1e15) return std::llround(value);
    return value;
}

}  // namespace

bool is_asked_for(const ConfigObject& group, const Key& key) {
    if (!key.with.empty() && !group.has(key.with)) return false;
    if (!key.without.empty() && group.has(key.without)) return false;
    return key.required || group.has(key.key);
}

double read_value(ConfigObject& group, const Key& key) {
    const std::string name(key.key);
    switch (key.kind) {
        case Key::Kind::whole:
            return sourced_whole(group, name, key.range);
        case Key::Kind::choice:
            return static_cast<double>(group.sourced_choice(name, key.names));
        case Key::Kind::number:
            break;
    }
    return group.sourced(name, key.range);
}

std::string description_of(const Key& key, double by_default) {
    std::string text = key.doc;
    if (!key.with.empty()) text += " Only with " + std::string(key.with) + '.';
    if (!key.without.empty()) text += " Only without " + std::string(key.without) + '.';
    if (key.required) return text;
    if (!key.like.empty()) return text + " Default: as " + std::string(key.like) + '.';
    if (key.kind == Key::Kind::choice)
        return text + " Default: " + key.names[static_cast<std::size_t>(by_default)] + '.';
    return text + " Default: " + written(by_default).dump() + '.';
}

Json sourced_schema(const Key& key, const std::string& description, const std::string& definition) {
    Json value;
    if (key.kind == Key::Kind::choice) {
        value["enum"] = key.names;
    } else {
        value["type"] = "number";
        if (key.kind == Key::Kind::whole) value["multipleOf"] = 1.0;  // 304.0 is no "integer"
        value["minimum"] = written(key.range.low);
        if (key.range.high != Range{}.high) value["maximum"] = written(key.range.high);
    }
    return {{"description", description},
            {"allOf", {{{"$ref", "#/definitions/" + definition}}}},
            {"properties", {{"value", value}}}};
}

Json object_schema(const std::string& description) {
    return {{"description", description},
            {"type", "object"},
            {"additionalProperties", false},
            {"required", Json::array()},
            {"properties", Json::object()}};
}

Json file_schema(const std::string& title, const std::string& description) {
    Json schema{{"$schema", "http://json-schema.org/draft-07/schema#"}, {"title", title}};
    schema.update(object_schema(description));
    schema["properties"]["schema"] = {{"description", "Version of this file format."}, {"const", 1}};
    return schema;
}

}  // namespace overlap
