#include "sim/core/installation.hpp"

#include <dlfcn.h>
#include <link.h>
#include <sys/auxv.h>

#include <array>

#include "sim/core/errors.hpp"

namespace overlap {

namespace fs = std::filesystem;

fs::path own_file() {
    Dl_info info{};
    void* loaded = nullptr;
    const bool found =
        dladdr1(reinterpret_cast<const void*>(&own_file), &info, &loaded, RTLD_DL_LINKMAP) != 0 &&
        loaded != nullptr;
    const char* name = found ? static_cast<const link_map*>(loaded)->l_name : "";
    std::error_code error;
    if (*name != '\0') return fs::canonical(name, error);
    // The program itself has no name there. A bare chroot has no /proc.
    const fs::path file = fs::canonical("/proc/self/exe", error);
    const auto* started = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
    return error && started != nullptr ? fs::canonical(started, error) : file;
}

std::optional<fs::path> find_beside_program(std::span<const std::string_view> places) {
    constexpr int levels = 5;
    std::error_code ignored;
    fs::path folder = own_file().parent_path();
    for (int level = 0; level < levels && !folder.empty(); ++level, folder = folder.parent_path()) {
        // Anybody may put files into a folder like /tmp, so it is no part of an installation below it.
        const fs::perms allowed = fs::status(folder, ignored).permissions();
        if (level > 0 && (allowed & fs::perms::others_write) != fs::perms::none) break;
        for (const std::string_view place : places)
            if (fs::exists(folder / place, ignored)) return folder / place;
        if (folder == folder.root_path()) break;
    }
    return std::nullopt;
}

void* load_function(const std::string& name, const char* function, const std::string& user) {
    const std::string installed = "lib/overlap/" + name;
    const std::array<std::string_view, 2> places{name, installed};
    const auto module = find_beside_program(places);
    if (!module)
        throw UserError(user + ": " + installed + " is not in the installation of " + own_file().string());
    // The module's names stay its own: SimGrid defines MPI_Init and other functions of MPI. Functions are bound now,
    // or each child process of engine simgrid would bind them again.
    void* loaded = dlopen(module->c_str(), RTLD_NOW | RTLD_LOCAL);
    void* found = loaded != nullptr ? dlsym(loaded, function) : nullptr;
    if (found == nullptr) throw UserError(user + ": " + module->string() + " cannot be loaded: " + dlerror());
    return found;
}

}  // namespace overlap
