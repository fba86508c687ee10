#include "sim/commands/folders.hpp"

#include "sim/core/errors.hpp"

namespace overlap {

void make_folder(const std::filesystem::path& folder) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) throw UserError(folder.string() + ": the folder can't be made (" + error.message() + ")");
}

}  // namespace overlap
