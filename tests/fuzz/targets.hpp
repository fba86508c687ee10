#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace overlap::fuzz {

/// One kind of file that users give, and the code that reads it.
struct Target {
    std::string name;
    std::string file;  ///< the input's file name; its extension can decide how the file is read
    /// Reads the file as a command does, up to what the command would simulate.
    void (*read)(const std::filesystem::path& file);
    /// Valid inputs that only this program can make; null where seeds.py makes them all.
    std::vector<std::string> (*seeds)() = nullptr;

    bool is_json() const { return file.ends_with(".json"); }
};

const std::vector<Target>& targets();
/// Throws UserError with the nearest name.
const Target& find_target(const std::string& name);

/// Gives the input to the target. None where it is read, else the text of the UserError that refuses it. Lets
/// every other exception through: it is what these tests look for.
std::optional<std::string> refusal(const Target& target, std::string_view input);

}  // namespace overlap::fuzz
