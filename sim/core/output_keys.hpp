#pragma once

#include <functional>
#include <span>
#include <string>

#include "sim/core/fields.hpp"
#include "sim/core/ranges.hpp"

// Tables of the keys that the program prints: the writer and the JSON schema of an output go by one list.
namespace overlap {

/// The value of a key that an output does not have.
inline const Json left_out(Json::value_t::discarded);

/// One key of an object that is written from a T.
template <class T>
struct OutputKey {
    std::string key;
    Json schema;                          ///< of the value, with its "description"
    std::function<Json(const T&)> value;  ///< none: others write it
    bool required = true;                 ///< else `value` may be `left_out`
    bool of_gap = false;                  ///< required where the object's "status" is "known_gap"

    OutputKey optional() const {
        OutputKey key = *this;
        key.required = false;
        return key;
    }
    /// Left out where `has` is false.
    OutputKey only_if(bool (*has)(const T&)) const {
        OutputKey key = optional();
        key.value = [=, inner = value](const T& from) { return has(from) ? inner(from) : left_out; };
        return key;
    }
};

/// The keys of `from`, in the order of the table.
template <class T, class Keys>
Json written(const T& from, const Keys& keys) {
    Json object = Json::object();
    // Names are unique: they need not be looked for, and the object grows once.
    auto& members = object.get_ref<Json::object_t&>();
    members.reserve(std::size(keys));
    for (const auto& key : keys)
        if (Json value = key.value ? key.value(from) : left_out; !value.is_discarded())
            members.emplace_back(key.key, std::move(value));
    return object;
}

/// Adds the keys to the schema of an object.
template <class Keys>
void add_keys(Json& object, const Keys& keys) {
    for (const auto& key : keys) {
        object["properties"][key.key] = key.schema;
        if (key.required) object["required"].push_back(key.key);
        if (!key.of_gap) continue;
        object["if"]["properties"]["status"]["const"] = "known_gap";
        object["then"]["required"].push_back(key.key);
    }
}

/// The schema of an object with these keys.
template <class Keys>
Json keys_schema(const std::string& doc, const Keys& keys) {
    Json object = object_schema(doc);
    if (doc.empty()) object.erase("description");
    add_keys(object, keys);
    return object;
}

/// The schema of a whole file or output with these keys.
template <class Keys>
Json file_of_keys(const std::string& title, const std::string& doc, const Keys& keys) {
    Json schema{{"$schema", "http://json-schema.org/draft-07/schema#"}, {"title", title}};
    schema.update(keys_schema(doc, keys));
    return schema;
}

/// A key whose value is an object of `members`.
template <class T>
OutputKey<T> group_of(const std::string& key, const std::string& doc, std::span<const OutputKey<T>> members) {
    return {key, keys_schema(doc, members), [members](const T& from) { return written(from, members); }};
}

/// The schema of a list of objects with these keys; it may be empty.
template <class Keys>
Json list_of(const std::string& doc, const Keys& keys) {
    return {{"description", doc}, {"type", "array"}, {"items", keys_schema("", keys)}};
}

/// A list of what is written from each of `items`.
template <class T>
Json all_written(std::span<const T> items, std::span<const OutputKey<T>> keys) {
    return mapped(items, [&](const T& item) { return written(item, keys); });
}

inline Json any_number(const std::string& doc) {
    return {{"description", doc}, {"type", "number"}};
}
inline Json number_from(int least, const std::string& doc) {
    return {{"description", doc}, {"type", "number"}, {"minimum", least}};
}
inline Json whole_from(int least, const std::string& doc) {
    return {{"description", doc}, {"type", "integer"}, {"minimum", least}};
}
inline Json flag_schema(const std::string& doc) {
    return {{"description", doc}, {"type", "boolean"}};
}
inline Json choice_of(std::span<const std::string> names, const std::string& doc) {
    return {{"description", doc}, {"enum", names}};
}
/// `schema`, or null.
inline Json or_null(Json schema) {
    schema["type"] = {schema["type"], "null"};
    return schema;
}

}  // namespace overlap
