#pragma once

#include <cstdlib>
#include <filesystem>

namespace overlap::test {

/// Folder of the public tables and samples, which are not part of the repository; tests that read them are skipped where
/// they are absent.
inline std::filesystem::path public_data() {
    if (const char* folder = std::getenv("OVERLAP_SHARED_DATA")) return folder;
    return std::filesystem::path(OVERLAP_SOURCE_DIR) / ".." / "shared" / "data";
}

}  // namespace overlap::test
