#pragma once

#include "sim/core/file_version.hpp"
#include "sim/core/output_keys.hpp"

// Tables of the keys of files: the reader, the JSON schema and whatever writes the file go by one list. Numbers,
// flags and choices are rows of fields.hpp; texts, lists and objects are made here.
namespace overlap {

/// One key of an object that fills in a T.
template <class T>
struct InputKey : OutputKey<T> {
    using Read = std::function<void(ConfigObject&, const std::string& key, T&)>;
    using Write = std::function<Json(const T&)>;
    Read read;

    InputKey(std::string name, Json schema, Read reader, Write writer = {})
        : OutputKey<T>{std::move(name), std::move(schema), std::move(writer)}, read(std::move(reader)) {}
    /// `definition`: what the schema calls a value with a source.
    template <class Base>
    InputKey(const Field<Base>& field, const std::string& definition = "")
        : InputKey(std::string(field.key), field_schema(field, field.by_default(), definition),
                   [field](ConfigObject& from, const std::string&, T& to) {
                       if (is_asked_for(from, field))
                           field.set(to, read_value(from, field, field.by_default()));
                   }) {
        this->required = field.required;
        if (field.si == nullptr) return;
        this->value = [field](const T& from) { return written_value(field, field.get(from)); };
    }

    /// A copy of this key after `change`.
    InputKey but(void (*change)(InputKey&)) const {
        InputKey key = *this;
        change(key);
        return key;
    }
    InputKey optional() const {
        return but([](InputKey& key) { key.required = false; });
    }
    /// The writer leaves it out.
    InputKey read_only() const {
        return but([](InputKey& key) { key.value = nullptr; });
    }
    /// The writer leaves it out where `shown` is false.
    InputKey written_if(bool (*shown)(const T&)) const {
        InputKey key = *this;
        key.value = this->only_if(shown).value;
        return key;
    }
    /// Required where the object's "status" is "known_gap", else optional.
    InputKey only_of_gap() const {
        return optional().but([](InputKey& key) { key.of_gap = true; });
    }
};
template <class T>
using InputKeys = std::span<const InputKey<T>>;

/// Values of the key "status". enforced: the claim must hold. known_gap: the claim does not hold, and "reason" says
/// why.
inline const std::array<std::string, 2> gap_states{"enforced", "known_gap"};

/// Reads `key` if the object has it or must have it.
template <class T>
void read_key(ConfigObject& from, const InputKey<T>& key, T& to) {
    const bool of_gap = key.of_gap && from.has("status") && from.raw("status") == gap_states[1];
    if (from.has(key.key) || key.required || of_gap) key.read(from, key.key, to);
}

/// Reads every key of `from`. A key that is not in the table is an error.
template <class T>
T read_keys(ConfigObject& from, std::type_identity_t<InputKeys<T>> keys, T to = T()) {
    for (const InputKey<T>& key : keys) read_key(from, key, to);
    from.finish();
    return to;
}

/// Reads keys as read_keys does; throws all errors as one.
template <class T>
T read_all_keys(ConfigObject& from, std::type_identity_t<InputKeys<T>> keys) {
    T to;
    KeptErrors errors;
    for (const InputKey<T>& key : keys) errors.keep([&] { read_key(from, key, to); });
    from.finish(errors);
    errors.throw_all(from.file());
    return to;
}

/// The key "schema" of a file of this kind; `history` says how versions differ.
template <class T>
InputKey<T> version_key(const std::string& kind, const std::string& history = "") {
    const int version = newest_version(kind);
    const InputKey<T> key{"schema",
                          {{"description", "Version of this file format; the newest if left out." + history},
                           {"const", version}},
                          [=](ConfigObject& from, const std::string&, T&) { from.version(version); },
                          [=](const T&) { return version; }};
    return key.optional();
}

/// Throw UserError if the text, or one of the texts, is empty.
std::string non_empty_text(ConfigObject& from, const std::string& key);
std::vector<std::string> non_empty_texts(ConfigObject& from, const std::string& key);

/// A text with one character or more.
template <class T, class Base>
InputKey<T> text_key(const std::string& key, std::string Base::*member, const std::string& doc) {
    return {
        key, text_schema(doc, 1),
        [=](ConfigObject& from, const std::string& name, T& to) { to.*member = non_empty_text(from, name); },
        [=](const T& from) { return (from.*member).empty() ? left_out : Json(from.*member); }};
}
/// A text that people read and the program does not use.
template <class T>
InputKey<T> text_key(const std::string& key, const std::string& doc) {
    return {key, text_schema(doc, 1),
            [](ConfigObject& from, const std::string& name, T&) { non_empty_text(from, name); }};
}

/// A name of small letters, digits and underscores.
template <class T, class Base>
InputKey<T> name_key(const std::string& key, std::string Base::*member, const std::string& doc) {
    InputKey<T> name = text_key<T>(key, member, doc);
    name.schema = name_schema(doc);
    return name;
}

/// A list of texts with one character or more each.
template <class T, class Base>
InputKey<T> texts_key(const std::string& key, std::vector<std::string> Base::*member,
                      const std::string& doc) {
    return {
        key,
        {{"description", doc}, {"type", "array"}, {"items", {{"type", "string"}, {"minLength", 1}}}},
        [=](ConfigObject& from, const std::string& name, T& to) { to.*member = non_empty_texts(from, name); },
        member};
}

/// An object whose own keys are checked later, by the reader that needs it.
template <class T, class Base>
InputKey<T> object_key(const std::string& key, Json Base::*member, const Json& schema) {
    const auto read = [=](ConfigObject& from, const std::string& name, T& to) {
        from.object(name);
        to.*member = from.raw(name);
    };
    return {key, schema, read,
            [=](const T& from) { return (from.*member).empty() ? left_out : from.*member; }};
}

/// An object with `keys`, which fill in a member.
template <class T, class Base, class Member>
InputKey<T> member_key(const std::string& key, Member Base::*member, const std::string& doc,
                       std::type_identity_t<InputKeys<Member>> keys) {
    const auto read = [=](ConfigObject& from, const std::string& name, T& to) {
        ConfigObject part = from.object(name);
        to.*member = read_keys<Member>(part, keys);
    };
    return {key, keys_schema(doc, keys), read, [=](const T& from) { return written(from.*member, keys); }};
}

/// The key of a part of T, which `part` returns.
template <class T, class Part, class Get>
InputKey<T> lifted(const InputKey<Part>& key, Get part) {
    InputKey<T> of_whole{
        key.key, key.schema,
        [=](ConfigObject& from, const std::string& name, T& to) { key.read(from, name, part(to)); },
        [=](const T& from) { return key.value(part(from)); }};
    of_whole.required = key.required;
    return of_whole;
}

/// A list of one or more objects with `keys`. The list's name is a plural: an empty list "has no case".
template <class T, class Base, class Item>
InputKey<T> list_key(const std::string& key, std::vector<Item> Base::*member, const std::string& doc,
                     std::type_identity_t<InputKeys<Item>> keys) {
    const auto read = [=](ConfigObject& from, const std::string& name, T& to) {
        for (ConfigObject& one : from.objects(name)) (to.*member).push_back(read_keys<Item>(one, keys));
        if ((to.*member).empty()) from.fail(name, "has no " + name.substr(0, name.size() - 1));
    };
    return {key, list_schema(doc, keys_schema("", keys)), read};
}

}  // namespace overlap
