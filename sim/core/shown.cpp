#include "sim/core/shown.hpp"

#include <array>
#include <cstdio>

namespace overlap {
namespace {

constexpr std::size_t most_of_a_value = 60, most_of_a_line = 2000;  // bytes
constexpr std::string_view replacement = "\xEF\xBF\xBD";            // U+FFFD

bool continues(std::string_view text, std::size_t at) {
    return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U;
}

/// Bytes of the character that begins at `at`, or 0: no overlong forms, no
/// surrogates, nothing above U+10FFFF.
std::size_t length_at(std::string_view text, std::size_t at) {
    const auto first = static_cast<unsigned char>(text[at]);
    if (first < 0x80) return 1;
    if (!continues(text, at + 1)) return 0;
    const auto second = static_cast<unsigned char>(text[at + 1]);
    if (first >= 0xC2 && first <= 0xDF) return 2;
    if (!continues(text, at + 2)) return 0;
    if (first == 0xE0 && second < 0xA0) return 0;
    if (first == 0xED && second > 0x9F) return 0;
    if (first >= 0xE0 && first <= 0xEF) return 3;
    if (!continues(text, at + 3)) return 0;
    if (first == 0xF0 && second < 0x90) return 0;
    if (first == 0xF4 && second > 0x8F) return 0;
    return first >= 0xF0 && first <= 0xF4 ? 4 : 0;
}

/// Calls `put` for every character in turn, with U+FFFD for bytes that are none.
template <class Put>
void for_each_character(std::string_view text, Put put) {
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t length = length_at(text, at);
        put(length == 0 ? replacement : text.substr(at, length));
        at += length == 0 ? 1 : length;
    }
}

/// C0 and C1 controls (the latter are two bytes, C2 80 to C2 9F) and DEL.
bool is_control(std::string_view character) {
    const auto first = static_cast<unsigned char>(character[0]);
    if (character.size() == 1) return first < 0x20 || first == 0x7F;
    return first == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0;
}

std::string escaped(std::string_view control) {
    if (control == "\n") return "\\n";
    if (control == "\r") return "\\r";
    if (control == "\t") return "\\t";
    std::array<char, 8> text{};
    std::snprintf(text.data(), text.size(), "\\u%04x", static_cast<unsigned char>(control.back()));
    return text.data();
}

/// Whole characters of valid UTF-8, at most `most` bytes of them.
std::string_view beginning(std::string_view text, std::size_t most) {
    if (text.size() <= most) return text;
    while (most > 0 && continues(text, most)) --most;
    return text.substr(0, most);
}

std::string abridged(const std::string& text, std::size_t most) {
    if (text.size() <= most) return text;
    return std::string(beginning(text, most - 3)) + "...";
}

/// So much of a text that it is seen to be too long; controls and quotes as JSON has them where `as_json`.
std::string readable(std::string_view text, std::size_t most, bool as_json) {
    std::string result;
    for_each_character(text.substr(0, most + 4), [&](std::string_view character) {
        if (is_control(character))
            result += escaped(character);
        else if (as_json && (character == "\"" || character == "\\"))
            result.append("\\").append(character);
        else
            result += character;
    });
    return result;
}

/// Appends no more members than abridged() keeps.
void put(std::string& out, const Json& value) {
    if (out.size() > most_of_a_value) return;
    if (value.is_string()) {
        out += '"' + readable(value.get_ref<const std::string&>(), most_of_a_value, true) + '"';
    } else if (value.is_array()) {
        out += '[';
        for (std::size_t i = 0; i < value.size() && out.size() <= most_of_a_value; ++i) {
            if (i > 0) out += ',';
            put(out, value[i]);
        }
        out += ']';
    } else if (value.is_object()) {
        out += '{';
        for (auto item = value.begin(); item != value.end() && out.size() <= most_of_a_value; ++item) {
            if (item != value.begin()) out += ',';
            out += '"' + readable(item.key(), most_of_a_value, true) + "\":";
            put(out, item.value());
        }
        out += '}';
    } else {
        out += value.dump();
    }
}

}  // namespace

std::string valid_utf8(std::string_view text) {
    std::string result;
    for_each_character(text, [&](std::string_view character) { result += character; });
    return result;
}

std::string in_quotes(std::string_view text, std::size_t most) {
    return "'" + abridged(readable(text, most, false), most) + "'";
}

std::string shown(const Json& value) {
    std::string text;
    put(text, value);
    return abridged(text, most_of_a_value);
}

std::string one_line(std::string_view message) {
    std::string line;
    for_each_character(message, [&](std::string_view character) {
        if (character == "\n" || character == "\r")
            line += ' ';
        else
            line += is_control(character) ? escaped(character) : std::string(character);
    });
    if (line.size() <= most_of_a_line) return line;
    const std::string_view head = beginning(line, most_of_a_line * 2 / 3);
    std::size_t tail = line.size() - most_of_a_line / 4;
    while (continues(line, tail)) ++tail;
    return std::string(head) + " ... (" + std::to_string(tail - head.size()) + " bytes left out) ... " +
           line.substr(tail);
}

std::string printable(std::string_view text) {
    std::string result;
    for_each_character(text, [&](std::string_view character) {
        const bool kept = character == "\n" || character == "\t" || !is_control(character);
        result += kept ? std::string(character) : escaped(character);
    });
    return result;
}

std::string lower_case(std::string text) {
    for (char& letter : text)
        if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
    return text;
}

std::vector<std::string> split(std::string_view text, char separator) {
    std::vector<std::string> parts(1);
    for (const char letter : text) {
        if (letter == separator)
            parts.emplace_back();
        else
            parts.back() += letter;
    }
    return parts;
}

std::string joined(std::span<const std::string> parts, std::string_view separator) {
    std::string text;
    for (const std::string& part : parts) text.append(&part == &parts.front() ? "" : separator).append(part);
    return text;
}

std::string json_text(const Json& json, int indent) {
    return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string unquoted(const Json& value) {
    return value.is_string() ? value.get<std::string>() : json_text(value);
}

std::string in_lines(const Json& json, std::size_t most_columns, const std::string& margin,
                     bool in_one_line) {
    if (json.empty() || !json.is_structured()) return json_text(json);
    if (!in_one_line)
        if (std::string line = in_lines(json, most_columns, " ", true);
            margin.size() + line.size() < most_columns)
            return line;
    const std::string inner = in_one_line ? " " : margin + "  ";
    std::string text;
    for (const auto& item : json.items()) {
        const std::string key = json.is_object() ? json_text(item.key()) + ": " : "";
        const std::string before = in_one_line && text.empty() && json.is_array() ? "" : inner;
        text += (text.empty() ? "" : ",") + before + key +
                in_lines(item.value(), most_columns, inner, in_one_line);
    }
    if (json.is_array()) return '[' + text + (in_one_line ? "" : margin) + ']';
    return '{' + text + margin + '}';
}

}  // namespace overlap
