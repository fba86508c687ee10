#pragma once

#include <filesystem>

#include "sim/confidence/evidence.hpp"

namespace overlap {

/// Reads accuracy.json, which scripts/accuracy writes; null where the folder `root` has none, as older ones.
/// Throws UserError.
std::shared_ptr<const Accuracy> read_accuracy(const std::filesystem::path& root);
Json accuracy_schema();

}  // namespace overlap
