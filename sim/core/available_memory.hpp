#pragma once

#include <string>

#include "sim/core/units.hpp"

namespace overlap {

/// Memory that this process may take: OVERLAP_MEMORY_GB of the environment, else what the machine, or the
/// control group that the process is in, has left. Infinite where neither says.
Bytes available_memory();

/// Throws UserError where `needed`, an estimate of what `what` takes, is more. `flag`: what allows it
/// nevertheless, besides OVERLAP_MEMORY_GB.
void require_memory_for(const std::string& what, Bytes needed, Bytes available, const std::string& flag = "");

/// "5.4 GB", "320 MB".
std::string memory_text(Bytes bytes);

}  // namespace overlap
