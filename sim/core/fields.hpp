#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "sim/core/config_reader.hpp"
#include "sim/core/kept_errors.hpp"
#include "sim/core/units.hpp"

// Tables of config keys. A struct that a file fills in lists its keys once, in `fields()`; the reader, the JSON schema,
// `sim explain` and whatever writes the file go by that list.
namespace overlap {

/// The unit that a key, or its end, names: "TFLOPS", "launch_us", "link_GBps_per_cu".
struct Unit {
    std::string_view name;
    double factor, inverse;  ///< SI units in one of this unit; this unit in one SI unit
    Range range;             ///< of values whose field gives no other range
};
inline constexpr std::array<Unit, 11> units{{{"us", 1e-6, 1e6, {0, 1e6}},
                                             {"GBps", 1e9, 1e-9, {1e-3, 1e7}},
                                             {"TFLOPS", 1e12, 1e-12, {0.01, 1e6}},
                                             {"GB", 1e9, 1e-9, {0.1, 1e5}},
                                             {"MB", 1e6, 1e-6, {0.1, 1e5}},
                                             {"per_kB", 1, 1, fraction},
                                             {"bytes", 1, 1, {0, 1e9}},
                                             {"W", 1, 1, {0, 1e4}},
                                             {"pJ_per_flop", 1e-12, 1e12, {0, 1e5}},
                                             {"pJ_per_byte", 1e-12, 1e12, {0, 1e5}},
                                             {"1", 1, 1, fraction}}};
constexpr const Unit& unit_of(std::string_view key) {
    constexpr std::string_view each = "_per_cu";
    if (key.ends_with(each)) key.remove_suffix(each.size());
    for (const Unit& unit : units)
        if (key.ends_with(unit.name) &&
            (key.size() == unit.name.size() || key[key.size() - unit.name.size() - 1] == '_'))
            return unit;
    return units.back();
}

/// Rates of a topology's links, which device files do not have: values follow them in sim new device alone.
inline constexpr std::array<std::string_view, 2> rates_of_links{"link_GBps", "ports_GBps"};

/// One key of a group of a config file. Its value is a {"value", "source"}, or `plain`.
struct Key {
    enum class Kind { number, whole, choice, flag };

    std::string_view key;
    const char* doc = "";  ///< one or two sentences; the schema and `sim explain` print them
    const Unit* unit = &units.back();
    Kind kind = Kind::number;
    Range range;                           ///< in the key's unit
    std::span<const std::string> names{};  ///< of a choice
    bool required = true;                  ///< else the member keeps its default
    bool plain = false;                    ///< the value stands by itself, without a source
    const char* otherwise = nullptr;       ///< the default in words, where the reader decides it
    std::string_view like;                 ///< where left out, the value is that of this key
    std::string_view with;                 ///< may only be given where this key of the group is
    std::string_view without;              ///< may only be given where this key of the group is not
    std::string_view follows;  ///< values whose factors this one takes in a what-if: "a * b" (moved_factor())
};

/// A key that fills in a member of T: a quantity, a number, a count, a choice or a flag, which is plain.
template <class T>
struct Field : Key {
    double (*si)(const T&) = nullptr;  ///< none: the value is checked and not kept
    void (*set_si)(T&, double) = nullptr;

    /// In the key's unit.
    double get(const T& from) const { return si(from) * unit->inverse; }
    double by_default() const { return si == nullptr ? 0 : get(T{}); }
    void set(T& to, double value) const {
        if (set_si != nullptr) set_si(to, value * unit->factor);
    }

    /// A key whose value is checked and not kept.
    static constexpr Field checked(std::string_view key, const char* doc) {
        Field field;
        field.key = key;
        field.doc = doc;
        field.unit = &unit_of(key);
        field.range = field.unit->range;
        return field;
    }

    constexpr Field in(Range allowed) const {
        return changed([&](Field& field) { field.range = allowed; });
    }
    constexpr Field whole() const {
        return changed([](Field& field) { field.kind = Kind::whole; });
    }
    constexpr Field optional() const {
        return changed([](Field& field) { field.required = false; });
    }
    /// A value without a source.
    constexpr Field plain_in(Range allowed) const {
        return in(allowed).changed([](Field& field) { field.plain = true; });
    }
    constexpr Field only_with(std::string_view other) const {
        return changed([&](Field& field) { field.with = other; });
    }
    constexpr Field only_without(std::string_view other) const {
        return changed([&](Field& field) { field.without = other; });
    }
    constexpr Field following(std::string_view others) const {
        return changed([&](Field& field) { field.follows = others; });
    }
    /// Optional; where left out, the reader decides. `words` say how.
    constexpr Field or_else(const char* words) const {
        return optional().changed([&](Field& field) { field.otherwise = words; });
    }
    /// Optional; where left out, the value is that of `other`, which stands before it in the table.
    constexpr Field or_as(std::string_view other) const {
        return optional().changed([&](Field& field) { field.like = other; });
    }

private:
    template <class Change>
    constexpr Field changed(Change change) const {
        Field field = *this;
        change(field);
        return field;
    }
};

namespace detail {
template <class T, class V>
T owner_of(V T::*);
template <class T, class V>
V type_of(V T::*);

template <int T, int B, int F, int J>
constexpr double plain(Quantity<T, B, F, J> value) {
    return value.si();
}
template <class V>
requires std::is_arithmetic_v<V> || std::is_enum_v<V>
constexpr double plain(V value) {
    return static_cast<double>(value);
}
}  // namespace detail

/// The field of a number or, of an int member, of a whole number; of a bool, of a flag.
template <auto Member>
constexpr auto field(std::string_view key, const char* doc) {
    using T = decltype(detail::owner_of(Member));
    using V = decltype(detail::type_of(Member));
    auto field = Field<T>::checked(key, doc);
    field.kind = std::is_integral_v<V> ? Key::Kind::whole : Key::Kind::number;
    if (std::is_same_v<V, bool>) field.kind = Key::Kind::flag;
    field.plain = field.kind == Key::Kind::flag;
    field.si = [](const T& from) { return detail::plain(from.*Member); };
    field.set_si = [](T& to, double value) { to.*Member = static_cast<V>(value); };
    return field;
}

/// The field of a part's member.
template <auto Part, auto Member>
constexpr auto field(std::string_view key, const char* doc) {
    using T = decltype(detail::owner_of(Part));
    using V = decltype(detail::type_of(Member));
    Field<T> of_whole;
    static_cast<Key&>(of_whole) = field<Member>(key, doc);
    of_whole.si = [](const T& from) { return detail::plain(from.*Part.*Member); };
    of_whole.set_si = [](T& to, double value) { to.*Part.*Member = static_cast<V>(value); };
    return of_whole;
}

/// A field that is an enum, whose enumerators are called `names`; it may be left out.
template <auto Member, std::size_t N>
constexpr auto field(std::string_view key, const std::array<std::string, N>& names, const char* doc) {
    auto choice = field<Member>(key, doc).optional();
    choice.kind = Key::Kind::choice;
    choice.names = names;
    return choice;
}

/// A field that is an enum, without a source, and required.
template <auto Member, std::size_t N>
constexpr auto plain_field(std::string_view key, const std::array<std::string, N>& names, const char* doc) {
    auto choice = field<Member>(key, names, doc).plain_in({});
    choice.required = true;
    return choice;
}

/// The value of the field's key in `group`, in the key's unit. The value that the key has where it is left out is
/// allowed whatever the range. Throws UserError.
double read_value(ConfigObject& group, const Key& key, double by_default);

/// Whether the group is to have the key, or has it: else it is left out, or unknown.
bool is_asked_for(const ConfigObject& group, const Key& key);

/// Reads the keys of `fields`, none of which is `or_as`, from `group` up to the first error. The caller
/// finishes the group.
template <class T>
void read_fields(ConfigObject& group, T& to, std::span<const Field<T>> fields) {
    for (const Field<T>& field : fields)
        if (is_asked_for(group, field)) field.set(to, read_value(group, field, field.by_default()));
}

/// Reads any fields; keeps all errors.
template <class T>
void read_fields(ConfigObject& group, T& to, KeptErrors& errors,
                 std::span<const Field<T>> fields = T::fields()) {
    for (const Field<T>& field : fields) {
        errors.keep([&] { read_fields(group, to, std::span(&field, 1)); });
        if (field.like.empty() || group.has(field.key)) continue;
        for (const Field<T>& other : fields)
            if (other.key == field.like) field.set_si(to, other.si(to));
    }
}

/// A value, in the key's unit, as a file has it.
Json written_value(const Key& key, double value);

/// Writes the keys of `fields`, all of them plain.
template <class T>
void write_fields(Json& group, const T& from, std::span<const Field<T>> fields) {
    for (const Field<T>& field : fields)
        group[std::string(field.key)] = written_value(field, field.get(from));
}

/// What `sim explain` and the schema say about a key: its doc, and its default where it has one.
std::string description_of(const Key& key, double by_default);
/// {"description", "properties": {"value"}} and `definition`, which demands the source.
Json sourced_schema(const Key& key, const std::string& description, const std::string& definition);

/// The schema of a key, with its description_of and its default: `sourced_schema`, or that of a plain value.
Json field_schema(const Key& key, double by_default, const std::string& definition);

/// The schema of a member of `json`, which `schema` describes; null where it has none of its own. `root`: of the file.
Json member_schema(const Json& root, const Json& schema, const Json& json, const std::string& key);

/// Adds all keys of T::fields() to the schema of an object.
template <class T>
void add_fields(Json& object, const std::string& definition, bool with_required = true,
                std::span<const Field<T>> fields = T::fields()) {
    for (const Field<T>& field : fields) {
        object["properties"][std::string(field.key)] = field_schema(field, field.by_default(), definition);
        if (field.required && with_required && field.with.empty() && field.without.empty())
            object["required"].push_back(field.key);
    }
}

/// {"description", "type": "object", "additionalProperties": false, "required": [], "properties": {}}
Json object_schema(const std::string& description);

/// An object of one of several kinds: `kinds` are schemas of objects, each with {"const"} as its key "type".
Json schema_by_type(const std::string& description, const std::vector<Json>& kinds);

/// A list of one or more `items`.
Json list_schema(const std::string& description, const Json& items);

/// An object with a member for each of `least` or more names.
Json map_schema(const std::string& description, const Json& names, const Json& values, int least = 0);

/// Text of `least` or more characters.
Json text_schema(const std::string& description, int least);

/// A name of small letters, digits and underscores, then `ending`, a regular expression.
Json name_schema(const std::string& description, const std::string& ending = "");

/// The schema of a whole file, of version 1 and no other keys yet.
Json file_schema(const std::string& title, const std::string& description, int version = 1);

/// Schema of a file with the keys "name" and "description".
Json named_file_schema(const std::string& title, const std::string& description, int version = 1);

}  // namespace overlap
