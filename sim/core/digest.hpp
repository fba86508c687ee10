#pragma once

#include <filesystem>
#include <string>

namespace overlap {

/// SHA-256 of a file's bytes, in lower-case hexadecimal. Throws UserError for a file that cannot be read.
std::string sha256_of(const std::filesystem::path& file);

}  // namespace overlap
