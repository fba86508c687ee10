#pragma once

#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace overlap {

/// Keys keep their order.
using Json = nlohmann::ordered_json;

/// The value, or null where there is none.
template <class Value>
Json or_null(const std::optional<Value>& value) {
    return value ? Json(*value) : Json();
}
/// The text, or null where it is empty.
inline Json or_null(const std::string& text) {
    return text.empty() ? Json() : Json(text);
}

/// Inclusive bounds of a number that a user gives.
struct Range {
    double low = 0.0;
    double high = std::numeric_limits<double>::max();
};
inline constexpr Range positive{std::numeric_limits<double>::min(), std::numeric_limits<double>::max()};
inline constexpr Range non_negative{0.0, std::numeric_limits<double>::max()};
inline constexpr Range fraction{0.0, 1.0};

}  // namespace overlap
