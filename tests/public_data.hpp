#pragma once

#include <filesystem>

namespace overlap::test {

/// Folder of the tables that others published, as far as fits and tests read them.
inline std::filesystem::path public_data() {
    return std::filesystem::path(OVERLAP_SOURCE_DIR) / "traces" / "published";
}

}  // namespace overlap::test
