#pragma once

#include <filesystem>

namespace overlap {

/// Creates an output folder and its parents if missing. Throws UserError.
void make_folder(const std::filesystem::path& folder);

}  // namespace overlap
