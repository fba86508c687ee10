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
    Json schema;  ///< of the value, with its "description"
    std::function<Json(const T&)> value;
    bool required = true;  ///< else `value` may be `left_out`

    OutputKey optional() const {
        OutputKey key = *this;
        key.required = false;
        return key;
    }
};

/// The keys of `from`, in the order of the table.
template <class T>
Json written(const T& from, std::span<const OutputKey<T>> keys) {
    Json object = Json::object();
    for (const OutputKey<T>& key : keys)
        if (Json value = key.value(from); !value.is_discarded()) object[key.key] = std::move(value);
    return object;
}

/// Adds the keys to the schema of an object.
template <class T>
void add_keys(Json& object, std::span<const OutputKey<T>> keys) {
    for (const OutputKey<T>& key : keys) {
        object["properties"][key.key] = key.schema;
        if (key.required) object["required"].push_back(key.key);
    }
}

/// A key whose value is an object of `members`.
template <class T>
OutputKey<T> group_of(const std::string& key, const std::string& doc, std::span<const OutputKey<T>> members) {
    Json schema = object_schema(doc);
    add_keys(schema, members);
    return {key, schema, [members](const T& from) { return written(from, members); }};
}

/// The schema of a list of objects with these keys; it may be empty.
template <class T>
Json list_of(const std::string& doc, std::span<const OutputKey<T>> keys) {
    Json items = object_schema("");
    items.erase("description");
    add_keys(items, keys);
    return {{"description", doc}, {"type", "array"}, {"items", items}};
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
inline Json choice_of(std::span<const std::string> names, const std::string& doc) {
    return {{"description", doc}, {"enum", names}};
}
/// `schema`, or null.
inline Json or_null(Json schema) {
    schema["type"] = {schema["type"], "null"};
    return schema;
}

}  // namespace overlap
