#pragma once

#include <filesystem>
#include <istream>
#include <string>

namespace overlap {

/// SHA-256 of a file's bytes, in lower-case hexadecimal. Throws UserError for a file that cannot be read.
std::string sha256_of(const std::filesystem::path& file);
/// The same of what is left of a stream.
std::string sha256_of(std::istream& in);

}  // namespace overlap
