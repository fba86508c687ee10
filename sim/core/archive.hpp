#pragma once

#include <filesystem>

namespace overlap {

/// Writes the files of an archive (tar, compressed or not) into `folder`, which is there. Throws UserError for
/// what is no archive, is damaged or cut off, leads out of the folder, or holds more than 4 GiB.
void unpack(const std::filesystem::path& archive, const std::filesystem::path& folder);

}  // namespace overlap
