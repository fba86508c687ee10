#include "sim/core/input_file.hpp"

#include "sim/core/errors.hpp"
#include "sim/core/files_read.hpp"

namespace overlap {

std::ifstream open_input(const std::filesystem::path& path, const std::string& expected) {
    std::error_code ignored;
    const std::filesystem::file_status status = std::filesystem::status(path, ignored);
    if (std::filesystem::is_directory(status))
        throw UserError(path.string() + ": is a directory, expected " + expected);
    if (std::filesystem::is_other(status))
        throw UserError(path.string() + ": is a device, a pipe or a socket, expected " + expected +
                        " on a disk");
    std::ifstream in(path, std::ios::binary);
    if (!in) throw UserError(path.string() + ": cannot be read (no such file, or no permission)");
    FilesRead::note(path);
    return in;
}

}  // namespace overlap
