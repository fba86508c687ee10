#pragma once

#include <filesystem>

namespace overlap {

/// Makes a folder for output, and those above it, where it is not there. Throws UserError.
void make_folder(const std::filesystem::path& folder);

}  // namespace overlap
