#pragma once

#include <string>

#include "sim/core/json.hpp"

namespace overlap {

/// `most_columns` of devices and topologies: a value and its source stand on one line.
inline constexpr std::size_t columns_of_a_value = 130;

/// JSON with one line for each value that fits into `most_columns`, such as a key with its description.
std::string in_lines(const Json& json, std::size_t most_columns, const std::string& margin = "\n",
                     bool in_one_line = false);

}  // namespace overlap
