#include "sim/core/environment.hpp"

#include <charconv>
#include <cstdlib>

#include "sim/core/errors.hpp"

namespace overlap {

std::optional<double> number_from_environment(const std::string& name, Range range) {
    const char* text = std::getenv(name.c_str());
    if (text == nullptr) return std::nullopt;
    const std::string_view given = text;
    double value = 0;
    const auto [end, error] = std::from_chars(given.begin(), given.end(), value);
    if (error != std::errc() || end != given.end() || !(range.low <= value && value <= range.high))
        throw UserError("environment: " + name + " is '" + std::string(given) + "', expected a number from " +
                        Json(range.low).dump() + " to " + Json(range.high).dump());
    return value;
}

}  // namespace overlap
