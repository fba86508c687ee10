#include "sim/core/input_file.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>

#include "sim/core/available_memory.hpp"
#include "sim/core/errors.hpp"
#include "sim/core/files_read.hpp"

namespace overlap {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void cannot_be_read(const fs::path& path, const std::string& why) {
    throw UserError(path.string() + ": cannot be read (" + why + ")");
}

constexpr int patience_ms = 10'000;  // a pipe whose other end nobody opens never ends

/// What comes out of a pipe until its end, as a file in memory.
fs::path content_of_pipe(const fs::path& path) {
    const int pipe = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const int kept = ::memfd_create("pipe", MFD_CLOEXEC);
    if (pipe < 0 || kept < 0) cannot_be_read(path, std::strerror(errno));
    pollfd begun{pipe, POLLIN, 0};
    if (::poll(&begun, 1, patience_ms) == 0)
        cannot_be_read(path,
                       "a pipe into which nothing came for " + std::to_string(patience_ms / 1000) + " s");
    ::fcntl(pipe, F_SETFL, 0);  // blocks from now on
    std::array<char, 1 << 16> block{};
    double bytes = 0;
    while (true) {
        const ssize_t size = ::read(pipe, block.data(), block.size());
        if (size < 0 && errno == EINTR) continue;
        if (size < 0) cannot_be_read(path, std::strerror(errno));
        if (size == 0) break;
        bytes += static_cast<double>(size);
        require_memory_for("the contents of " + path.string(), Bytes(bytes), available_memory());
        for (ssize_t done = 0; done < size;) {
            const ssize_t written = ::write(kept, block.data() + done, static_cast<std::size_t>(size - done));
            if (written < 0) cannot_be_read(path, std::strerror(errno));
            done += written;
        }
    }
    ::close(pipe);
    return "/proc/self/fd/" + std::to_string(kept);
}

/// Reads each pipe once: a second read of it would find nothing.
fs::path kept_content_of_pipe(const fs::path& path) {
    static std::mutex mutex;
    static std::map<fs::path, fs::path> kept;
    const std::scoped_lock lock(mutex);
    const auto found = kept.find(path);
    return found != kept.end() ? found->second : kept.emplace(path, content_of_pipe(path)).first->second;
}

}  // namespace

fs::path on_disk(const fs::path& path, const std::string& expected) {
    std::error_code ignored;
    const fs::file_status status = fs::status(path, ignored);
    if (fs::is_directory(status)) throw UserError(path.string() + ": is a directory, expected " + expected);
    if (fs::is_fifo(status)) {
        if (FilesRead::is_recording())
            throw UserError(path.string() + ": is a pipe, whose content a sweep can't vouch for; expected " +
                            expected + " on a disk");
        return kept_content_of_pipe(path);
    }
    if (fs::is_other(status))
        throw UserError(path.string() + ": is a device or a socket, expected " + expected);
    return path;
}

std::ifstream open_input(const fs::path& path, const std::string& expected) {
    std::ifstream in(on_disk(path, expected), std::ios::binary);
    if (!in) throw UserError(path.string() + ": cannot be read (no such file, or no permission)");
    FilesRead::note(path);
    return in;
}

}  // namespace overlap
