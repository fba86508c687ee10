#include "sim/core/environment.hpp"

#include <cstdlib>

#include "sim/core/errors.hpp"
#include "sim/core/numbers.hpp"

namespace overlap {

std::optional<double> number_from_environment(const std::string& name, Range range) {
    const char* text = std::getenv(name.c_str());
    if (text == nullptr) return std::nullopt;
    const auto value = parsed<double>(text);
    if (!value || !(range.low <= *value && *value <= range.high))
        throw UserError("environment: " + name + " is '" + text + "', expected a number from " +
                        Json(range.low).dump() + " to " + Json(range.high).dump());
    return value;
}

}  // namespace overlap
