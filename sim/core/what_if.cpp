#include "sim/core/what_if.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "sim/core/fields.hpp"
#include "sim/core/file_version.hpp"
#include "sim/core/numbers.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"

namespace overlap {
namespace {

const std::array<std::string, 2> roots{"topology", "device"};
constexpr double largest_exact_integer = 9007199254740992.0;  // 2^53

bool is_parameter(const Json& node) {
    return node.is_object() && node.contains("value");
}

std::vector<std::string> keys_of(const Json& node) {
    std::vector<std::string> keys;
    if (node.is_object())
        for (const auto& item : node.items()) keys.push_back(item.key());
    if (node.is_array())
        for (std::size_t i = 0; i < node.size(); ++i) keys.push_back(std::to_string(i));
    return keys;
}

template <class AnyJson>
AnyJson* member(AnyJson& node, const std::string& key) {
    if (node.is_object()) {
        const auto found = node.find(key);
        return found == node.end() ? nullptr : &*found;
    }
    const std::vector<std::string> indices = keys_of(node);
    const auto found = std::ranges::find(indices, key);
    return found == indices.end() ? nullptr : &node[static_cast<std::size_t>(found - indices.begin())];
}

/// End of a path: the value that it names, or the last node that exists.
struct PathEnd {
    ConfigFile* file = nullptr;
    Json* node = nullptr;   ///< last node that was reached
    std::size_t steps = 0;  ///< parts of the path up to it, including the root
    std::string pointer;

    bool is_value() const { return is_parameter(*node) || !node->is_structured(); }
    std::string place() const { return (pointer.empty() ? "/" : pointer) + " of " + file->name; }
};

PathEnd follow(ConfigFile& file, const std::vector<std::string>& parts) {
    PathEnd at{&file, &file.json, 1, ""};
    while (at.steps < parts.size() && !is_parameter(*at.node)) {
        Json* next = member(*at.node, parts[at.steps]);
        if (next == nullptr) break;
        at.node = next;
        at.pointer += "/" + parts[at.steps++];
    }
    return at;
}

/// The ends in those files in which the path leads farthest.
std::vector<PathEnd> farthest(std::span<ConfigFile* const> files, const std::vector<std::string>& parts) {
    std::vector<PathEnd> ends;
    for (ConfigFile* file : files) {
        PathEnd end = follow(*file, parts);
        if (!ends.empty() && end.steps < ends.front().steps) continue;
        if (!ends.empty() && end.steps > ends.front().steps) ends.clear();
        ends.push_back(std::move(end));
    }
    return ends;
}

/// The schema of what `parts` name in a file; null if it has none.
Json schema_at(const ConfigFile& file, std::span<const std::string> parts) {
    const Json root = file.schema();
    Json schema = root;
    const Json none, *node = &file.json;
    for (const std::string& part : parts) {
        schema = member_schema(root, schema, *node, part);
        node = member(*node, part);
        if (node == nullptr) node = &none;
    }
    return schema;
}

/// What a value of this schema is where a file leaves it out; null if the schema does not say, or it is no number,
/// text or flag.
Json default_in(const Json& schema) {
    const Json& value = schema.contains("properties") ? schema["properties"].value("value", Json()) : schema;
    return value.is_object() ? value.value("default", Json()) : Json();
}

/// Writes the default of a key that all files leave out into the first of them that may have it.
void fill_in(std::span<ConfigFile* const> files, const std::vector<std::string>& parts) {
    const std::vector<PathEnd> ends = farthest(files, parts);
    if (ends.front().steps == parts.size() || ends.front().is_value()) return;
    const std::span keys = std::span(parts).subspan(1);
    for (const PathEnd& end : ends) {
        if (end.file->schema == nullptr || !end.node->is_object()) continue;
        const Json schema = schema_at(*end.file, keys);
        if (!schema.is_object()) continue;
        const bool sourced = schema.contains("properties") && schema["properties"].contains("value");
        const bool plain =
            schema.contains("enum") ||
            (schema.contains("type") && schema["type"] != "object" && schema["type"] != "array");
        if (!sourced && !plain) continue;
        Json value = default_in(schema);
        if (schema.contains("x-default-as")) {
            std::vector<std::string> other = parts;
            other.back() = schema["x-default-as"].get<std::string>();
            fill_in(files, other);
            const PathEnd found = farthest(files, other).front();
            if (found.steps == other.size())
                value = is_parameter(*found.node) ? (*found.node)["value"] : *found.node;
        }
        Json* node = &end.file->json;
        for (const std::string& key : keys) node = node->is_array() ? member(*node, key) : &(*node)[key];
        *node = sourced ? Json{{"value", value}, {"source", "default, changed by a what-if"}} : value;
        return;
    }
}

/// Keys that a file may have at the place of its schema that `parts` name.
std::vector<std::string> possible_keys(const ConfigFile& file, std::span<const std::string> parts) {
    if (file.schema == nullptr) return {};
    const Json schema = schema_at(file, parts);
    return schema.is_object() && schema.contains("properties") ? keys_of(schema["properties"])
                                                               : std::vector<std::string>();
}

/// " (did you mean …)" of the keys at the ends, and of those that files may leave out there.
std::string suggested_key(const std::string& key, std::span<const std::string> parts,
                          const std::vector<PathEnd>& ends) {
    std::vector<std::string> known;
    for (const PathEnd& end : ends) {
        append(known, keys_of(*end.node));
        append(known, possible_keys(*end.file, parts.subspan(1, end.steps - 1)));
    }
    std::ranges::sort(known);
    known.erase(std::ranges::unique(known).begin(), known.end());
    return suggestion(key, known);
}

/// 1.5 of "1.5x".
std::optional<double> factor_of(const Json& value) {
    if (!value.is_string()) return {};
    const std::string_view text = value.get_ref<const std::string&>();
    if (!text.ends_with('x')) return {};
    const auto factor = parsed<double>(text.substr(0, text.size() - 1));
    return factor && std::isfinite(*factor) ? factor : std::nullopt;
}

Json multiplied(const Json& old, double factor) {
    const double product = old.get<double>() * factor;
    // A count stays an integer, because some readers accept nothing else.
    if (old.is_number_integer() && product == std::floor(product) &&
        std::abs(product) <= largest_exact_integer)
        return static_cast<std::int64_t>(product);
    return product;
}

/// The new value for `value` applied to `old`; none if it is of another kind.
std::optional<Json> replaced(const Json& old, const Json& value, bool count) {
    if (old.is_number()) {
        if (value.is_number()) return value;
        if (const auto factor = factor_of(value)) {
            const Json product = multiplied(old, *factor);
            return count ? Json(std::round(product.get<double>())) : product;
        }
        return {};
    }
    if (old.is_null() && !factor_of(value)) return value;  // its default is no value
    if ((old.is_string() && value.is_string()) || (old.is_boolean() && value.is_boolean())) return value;
    return {};
}

const char* expected_for(const Json& old) {
    if (old.is_null()) return "a value";
    if (old.is_number()) return "a number, or a factor such as \"2x\"";
    return old.is_string() ? "text" : "true or false";
}

}  // namespace

ConfigFile read_config_file(const std::filesystem::path& path, const std::string& kind) {
    return {upgraded(read_json_file(path), kind, path.string()), path.string()};
}

WhatIf::WhatIf(const Json& changes, const std::string& origin) : origin_(origin + ": /what_if") {
    if (!changes.is_object())
        throw UserError(origin_ + ": is " + shown(changes) +
                        ", expected an object such as {\"topology.fabric.0.bandwidth_GBps\": \"2x\"}");
    for (const auto& [path, value] : changes.items()) {
        const std::string root = split(path, '.').front();
        if (path == root || !contains(roots, root))
            throw UserError(one_line(origin_ + "/" + path + ": begins with " + in_quotes(root) +
                                     ", expected topology.KEY or device.KEY"));
        // Results name the topology, from which it is read again.
        if (path == "topology.name") throw UserError(origin_ + "/" + path + ": can't be changed");
    }
    changes_ = changes;
}

void WhatIf::change(const std::string& root, std::span<ConfigFile* const> files, IsCount is_count) const {
    std::vector<ConfigFile*> changed;
    for (const auto& [path, value] : changes_.items()) {
        const std::vector<std::string> parts = split(path, '.');
        if (parts.front() != root) continue;
        const auto fail = [&, &key = path](const std::string& message) {
            throw UserError(one_line(origin_ + "/" + key + ": " + message));
        };
        fill_in(files, parts);
        const std::vector<PathEnd> ends = farthest(files, parts);
        const PathEnd& end = ends.front();
        if (end.steps < parts.size())
            fail("has " + in_quotes(parts[end.steps]) + " after " + end.place() + ", which " +
                 (end.is_value() ? "is a value"
                                 : "has no such key" + suggested_key(parts[end.steps], parts, ends)));
        if (!end.is_value())
            fail("is all of " + end.place() + ", expected one value of it" + suggested_key("", parts, ends));

        Json& old = is_parameter(*end.node) ? (*end.node)["value"] : *end.node;
        std::optional<Json> next = replaced(old, value, is_count != nullptr && is_count(path));
        if (!next)
            fail("is " + shown(value) + ", expected " + expected_for(old) + " instead of " + shown(old));
        old = *std::move(next);
        changed.push_back(end.file);
    }
    for (ConfigFile* file : changed) file->mark_changed();
}

std::vector<ChangedValue> changed_values(const Json& what_if, const std::string& root,
                                         std::span<ConfigFile* const> files, IsCount is_count) {
    std::vector<ChangedValue> changes;
    for (const auto& [path, value] : what_if.items()) {
        const std::vector<std::string> parts = split(path, '.');
        if (parts.front() != root) continue;
        fill_in(files, parts);
        const PathEnd end = farthest(files, parts).front();
        if (end.steps < parts.size() || !end.is_value()) continue;
        const Json& before = is_parameter(*end.node) ? (*end.node)["value"] : *end.node;
        if (const std::optional<Json> after = replaced(before, value, is_count != nullptr && is_count(path)))
            changes.push_back({path, value, before, *after});
    }
    return changes;
}

}  // namespace overlap
