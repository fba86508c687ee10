#pragma once

#include <filesystem>
#include <string>

namespace overlap {

/// Writes the files of an archive (tar, compressed or not) into `folder`, which is there. Throws UserError for
/// what is no archive, is damaged or cut off, leads out of the folder, or holds more than 4 GiB.
void unpack(const std::filesystem::path& archive, const std::filesystem::path& folder);

/// The contents of a compressed file (gzip, xz; what is not compressed, as it is). Throws UserError for a file
/// that is missing, damaged or cut off, or holds more than 4 GiB. `expected`: as in open_input.
std::string decompressed(const std::filesystem::path& file, const std::string& expected = "a compressed file");

}  // namespace overlap
