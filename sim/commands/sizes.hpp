#pragma once

#include <string>

#include "sim/core/operators.hpp"

namespace overlap {

/// "4096", "64KB", "64MB", "1.5GB" (decimal), "64KiB", "1GiB" (binary). `where` names the flag in errors.
Bytes parse_size(const std::string& text, const std::string& where);

}  // namespace overlap
