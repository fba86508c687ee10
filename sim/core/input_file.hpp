#pragma once

#include <filesystem>
#include <fstream>
#include <string>

namespace overlap {

/// Opens a regular file for reading. Throws UserError if it is missing or unreadable, and for devices, pipes
/// and sockets, which may never end. `expected`: "a JSON file".
std::ifstream open_input(const std::filesystem::path& path, const std::string& expected);

}  // namespace overlap
