#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace overlap {

/// Writes the files of an archive (tar, compressed or not) into `folder`, which is there. Throws UserError for
/// what is no archive, is damaged or cut off, leads out of the folder, or holds more than 4 GiB.
void unpack(const std::filesystem::path& archive, const std::filesystem::path& folder);

/// The contents of a compressed file (gzip, xz, bzip2, Zstandard; what is not compressed, as it is), or their first
/// `most` bytes. Throws UserError for a file that is missing, damaged or cut off, or holds more than 4 GiB.
/// `expected`: as in open_input.
std::string decompressed(const std::filesystem::path& file, const std::string& expected = "a compressed file",
                         std::size_t most = SIZE_MAX);

/// A file with these contents: `file` itself, or, of a compressed one, a file in memory, which stays until the
/// program's end. For libraries that read files.
std::filesystem::path uncompressed_file(const std::filesystem::path& file, const std::string& expected);

/// `text` compressed by gzip; the same bytes on every day.
std::string compressed(std::string_view text);

}  // namespace overlap
