#pragma once

#include <string>
#include <string_view>

#include "sim/core/json.hpp"

namespace overlap {

/// parse_json, but empty instead of the objects in arrays of the outermost object that `keeps` refuses, which so
/// take little memory.
Json parse_json_keeping(std::string_view text, const std::string& origin, bool (*keeps)(const Json& element));

}  // namespace overlap
