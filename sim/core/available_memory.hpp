#pragma once

#include <string>

#include "sim/core/units.hpp"

namespace overlap {

/// Memory that this process may use: OVERLAP_MEMORY_GB of the environment, else what the machine or the
/// process's control group has left, or had 50 ms ago. Infinite if neither is known.
Bytes available_memory();

/// Throws UserError if `needed`, an estimate for `what`, exceeds it. `flag`: what allows it nevertheless,
/// besides OVERLAP_MEMORY_GB.
void require_memory_for(const std::string& what, Bytes needed, Bytes available, const std::string& flag = "");

/// "5.4 GB", "320 MB".
std::string memory_text(Bytes bytes);

}  // namespace overlap
