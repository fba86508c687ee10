#pragma once

#include <filesystem>
#include <fstream>
#include <string>

namespace overlap {

/// Opens a file to be read as a whole. Throws UserError where it is none, or can't be read, and for what may
/// never end or never begin: devices, pipes and sockets. `expected`: "a JSON file".
std::ifstream open_input(const std::filesystem::path& path, const std::string& expected);

}  // namespace overlap
