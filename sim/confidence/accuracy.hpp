#pragma once

#include <filesystem>

#include "sim/confidence/evidence.hpp"

namespace overlap {

/// Of configs/accuracy.json; null where the folder `root` has none, as older ones. scripts/accuracy writes the file.
/// Throws UserError.
std::shared_ptr<const Accuracy> read_accuracy(const std::filesystem::path& root);
Json accuracy_schema();

}  // namespace overlap
