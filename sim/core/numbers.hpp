#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace overlap {

/// The number that all of `text` is, if it is one of the type's range.
template <class Number>
std::optional<Number> parsed(std::string_view text) {
    Number number{};
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
    return number;
}

}  // namespace overlap
