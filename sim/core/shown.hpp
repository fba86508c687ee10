#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/json.hpp"

// How messages and outputs show the user's input, which may hold any bytes: broken UTF-8, NUL, escape
// sequences of a terminal, megabytes.
namespace overlap {

/// `text` as UTF-8 (RFC 3629); U+FFFD replaces every byte that begins no character.
std::string valid_utf8(std::string_view text);

/// `text` in single quotes, for messages: valid UTF-8, control characters as \n
/// or \u001b, cut after `most` bytes.
std::string in_quotes(std::string_view text, std::size_t most = 60);

/// A value for messages, written as JSON.
std::string shown(const Json& value);

/// A text as it is, any other value as JSON.
std::string unquoted(const Json& value);

/// A message as one line of valid UTF-8: line breaks become spaces, other control characters are escaped, and
/// a message over 2000 bytes loses its middle.
std::string one_line(std::string_view message);

/// An output of many lines, for a terminal: valid UTF-8, control characters escaped, but for line breaks and tabs.
std::string printable(std::string_view text);

/// `text` in small letters (ASCII).
std::string lower_case(std::string text);

/// "a, b, c".
std::string joined(std::span<const std::string> parts, std::string_view separator = ", ");

/// What stands between the separators of `text`, of which there may be none.
std::vector<std::string> split(std::string_view text, char separator);

/// JSON text, whatever bytes the strings in it hold; Json::dump throws on those that are no UTF-8.
std::string json_text(const Json& json, int indent = -1);

/// JSON text with one line for each value that fits into `most_columns`, such as a key with its description. By
/// default as in the files of devices and topologies: a value and its source stand on one line.
std::string in_lines(const Json& json, std::size_t most_columns = 130, const std::string& margin = "\n",
                     bool in_one_line = false);

}  // namespace overlap
