#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace overlap {

/// The file that holds this code: the program, or a shared library (the Python module). Absolute, links resolved.
std::filesystem::path own_file();

/// The nearest of `places`, relative paths, in the folder of own_file() and the folders above it: up to five
/// levels, as deep as a build tree's programs are, but not into one that anybody may write to. So an installation, or a
/// build tree, works wherever it is moved.
std::optional<std::filesystem::path> find_beside_program(std::span<const std::string_view> places);

/// A function with a plain name in the module `name`, which is loaded now: from beside the program in a build tree, or
/// from an installation's lib/overlap. What only some commands need is in modules, because loading libraries takes
/// longer than a simulation. Throws UserError that begins with `user`, for whom it is loaded.
void* load_function(const std::string& name, const char* function, const std::string& user);

}  // namespace overlap
