#pragma once

#include <string>

#include "sim/core/operators.hpp"

namespace overlap {

/// "4096", "64KB", "64MB", "1.5GB" (decimal), "64KiB", "1GiB" (binary). `where` names the flag in errors.
Bytes parse_size(const std::string& text, const std::string& where);

/// "8192x2560x8192" as M, N, K, each from 1 to 1e9.
GemmShape parse_shape(const std::string& text, const std::string& where);

}  // namespace overlap
