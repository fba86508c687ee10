#pragma once

#include <cstdint>
#include <filesystem>

namespace overlap {

/// How much of a sweep is on the disk.
struct Progress {
    struct File {
        std::uint64_t bytes = 0;
        std::uint32_t crc32 = 0;  ///< of these bytes
    };
    std::uint64_t next = 0;  ///< the first combination that has not run
    std::uint64_t points = 0, errors = 0;
    File csv, jsonl;
};

/// Replaces the file as a whole, with a checksum of its contents. Throws UserError.
void write_progress(const std::filesystem::path& path, const Progress& progress);
/// Throws UserError for a file that write_progress did not write.
Progress read_progress(const std::filesystem::path& path);

}  // namespace overlap
