#pragma once

#include <filesystem>
#include <fstream>
#include <string>

namespace overlap {

/// A file on a disk with what `path` gives: `path` itself, or, for a pipe, what came out of it until its end, which
/// is kept for later calls. Throws UserError if it is missing or a folder, and for devices and sockets, which may
/// never end. `expected`: "a JSON file".
std::filesystem::path on_disk(const std::filesystem::path& path, const std::string& expected);

/// Opens on_disk(path, expected) for reading. Throws UserError if it is unreadable.
std::ifstream open_input(const std::filesystem::path& path, const std::string& expected);

}  // namespace overlap
