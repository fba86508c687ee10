#include "sim/core/output_file.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>
#include <optional>

#include "sim/core/allocation.hpp"
#include "sim/core/errors.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"

namespace overlap {
namespace {

namespace fs = std::filesystem;

constexpr const char *temporary_prefix = ".sim-", *temporary_suffix = ".part";

/// The place where output goes.
struct Target {
    fs::path path;                        ///< with links resolved
    bool straight = false;                ///< written to directly, not replaced
    int standard_stream = -1;             ///< the descriptor where `path` is the standard output or error
    std::optional<struct stat> old = {};  ///< of the regular file that is replaced
};

/// The standard output or error where it is the file of `status`; −1 for any other file.
int standard_stream(const struct stat& status) {
    for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) {
        struct stat open {};
        if (::fstat(stream, &open) == 0 && open.st_dev == status.st_dev && open.st_ino == status.st_ino)
            return stream;
    }
    return -1;
}

/// A link in /proc names an open file; its text is not a path.
bool names_open_file(const fs::path& link) {
    struct statfs system {};
    const fs::path folder = link.has_parent_path() ? link.parent_path() : ".";
    return ::statfs(folder.c_str(), &system) == 0 && system.f_type == PROC_SUPER_MAGIC;
}

Target target_of(const fs::path& path) {
    Target target{path};
    struct stat status {};
    if (::stat(path.c_str(), &status) == 0) {
        const auto refuse = [&](const char* kind) {
            throw UserError(path.string() + ": is a " + kind + ", expected a file to write");
        };
        if (S_ISDIR(status.st_mode)) refuse("directory");
        if (S_ISSOCK(status.st_mode)) refuse("socket");
        if (S_ISBLK(status.st_mode)) refuse("block device");
        target.standard_stream = standard_stream(status);
        target.straight = target.standard_stream >= 0 || !S_ISREG(status.st_mode);
        if (target.standard_stream < 0 && ::access(path.c_str(), W_OK) != 0) fail_with_errno(path, "written");
        target.old = status;
    } else if (errno != ENOENT) {
        fail_with_errno(path, "written");
    }
    std::error_code error;
    while (!target.straight && fs::is_symlink(target.path, error)) {  // no circle: stat() refused those
        target.straight = names_open_file(target.path);
        if (target.straight) break;
        target.path = target.path.parent_path() / fs::read_symlink(target.path, error);
        if (error) throw UserError(path.string() + ": cannot be written: " + error.message());
    }
    return target;
}

/// A new file beside a target, removed at the end unless it took the target's name.
class TemporaryFile {
public:
    /// Errors name `shown`.
    TemporaryFile(const fs::path& target, const fs::path& shown)
        : folder_(target.has_parent_path() ? target.parent_path() : "."), file_(create(shown)) {}
    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;
    ~TemporaryFile() {
        if (!renamed_) ::unlink(path_.c_str());
    }

    const Descriptor& file() const { return file_; }

    /// What is visible of a file besides its content.
    void be_like(const struct stat& old, const fs::path& shown) const {
        struct stat own {};
        if (::fstat(file_.get(), &own) != 0) fail_with_errno(shown, "written");
        const bool same_owner = own.st_uid == old.st_uid && own.st_gid == old.st_gid;
        // Only root may give files away; for all others the new file is their own.
        if (!same_owner && ::fchown(file_.get(), old.st_uid, old.st_gid) != 0 && errno != EPERM)
            fail_with_errno(shown, "written");
        constexpr mode_t permissions = 07777;
        if (((own.st_mode ^ old.st_mode) & permissions) != 0 &&
            ::fchmod(file_.get(), old.st_mode & permissions) != 0)
            fail_with_errno(shown, "written");
    }

    void rename(const fs::path& target, const fs::path& shown) {
        sync(file_, shown);  // before the rename, or a power cut could leave an empty file under the name
        file_.close(shown);
        if (::rename(path_.c_str(), target.c_str()) != 0) fail_with_errno(shown, "written");
        renamed_ = true;
        const Descriptor folder(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        if (folder.get() < 0 && errno == EACCES) return;  // a folder may be writable and not readable
        if (folder.get() < 0) fail_with_errno(shown, "written");
        sync(folder, shown);
    }

private:
    int create(const fs::path& shown) {
        static std::atomic<unsigned> number{0};
        constexpr int most_tries = 1000;  // a process that was killed may have left files of the same names
        for (int tries = 1;; ++tries) {
            path_ = folder_ / (temporary_prefix + std::to_string(::getpid()) + "-" +
                               std::to_string(number++) + temporary_suffix);
            const int file =
                ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
            if (file >= 0) return file;
            if (errno == ENOENT)
                throw UserError(shown.string() + ": cannot be written: folder " + folder_.string() +
                                " is missing");
            if (errno != EEXIST || tries == most_tries) fail_with_errno(shown, "written");
        }
    }

    fs::path folder_, path_;
    Descriptor file_;
    bool renamed_ = false;
};

/// Into a pipe, a device or an open file.
void write_straight(const Target& target, std::string_view content) {
    // O_TRUNC is for an open file by its name in /proc; devices and pipes ignore it.
    Descriptor file(target.standard_stream >= 0
                        ? ::fcntl(target.standard_stream, F_DUPFD_CLOEXEC, 0)
                        : ::open(target.path.c_str(), O_WRONLY | O_TRUNC | O_NOCTTY | O_CLOEXEC));
    if (file.get() < 0) fail_with_errno(target.path, "written");
    write_all(file, content, target.path);
    file.close(target.path);
}

}  // namespace

Descriptor::~Descriptor() {
    if (number_ >= 0) ::close(number_);
}

void Descriptor::close(const fs::path& path) {
    // The number is free again whatever close() returns; EINTR is no failure of the file.
    if (::close(std::exchange(number_, -1)) != 0 && errno != EINTR) fail_with_errno(path, "written");
}

void write_all(const Descriptor& file, std::string_view content, const fs::path& path) {
    while (!content.empty()) {
        const ssize_t written = ::write(file.get(), content.data(), content.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) fail_with_errno(path, "written");
        content.remove_prefix(static_cast<std::size_t>(written));
    }
}

void sync(const Descriptor& file, const fs::path& path) {
    while (::fsync(file.get()) != 0) {
        if (errno == EINVAL || errno == ENOTSUP) return;  // this file system has no such thing
        if (errno != EINTR) fail_with_errno(path, "written");
    }
}

void fail_with_errno(const fs::path& path, const std::string& doing) {
    const int reason = errno;
    throw UserError(path.string() + ": cannot be " + doing + ": " + std::strerror(reason));
}

void require_writable(const fs::path& path) {
    const Target target = target_of(path);
    if (!target.straight) TemporaryFile(target.path, path);
}

void require_outputs(std::span<const fs::path> outputs, std::span<const fs::path> inputs) {
    const auto real = [](const fs::path& path) {
        std::error_code ignored;
        const fs::path found = fs::weakly_canonical(fs::absolute(path), ignored);
        return ignored ? fs::absolute(path).lexically_normal() : found;
    };
    std::vector<fs::path> files;
    for (const fs::path& path : outputs) {
        if (path.empty()) continue;
        require_writable(path);
        const Target target = target_of(path);
        if (target.straight) continue;            // a pipe takes one after the other
        const fs::path file = real(target.path);  // also of a link to a file that is not there yet
        if (contains(files, file))
            throw UserError(path.string() +
                            ": is named for two outputs, of which one would overwrite the other");
        files.push_back(file);
        for (const fs::path& input : inputs)
            if (!input.empty() && real(input) == file)
                throw UserError(path.string() + ": is an input, which the output would overwrite");
    }
}

void require_file_name(const std::string& name, const std::string& what) {
    const auto allowed = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
               c == '.' || c == '-';
    };
    constexpr std::size_t longest = 100;
    if (name.empty() || name.size() > longest || name.front() == '.' || name.front() == '-' ||
        !std::ranges::all_of(name, allowed))
        throw UserError(what + " is " + in_quotes(name) +
                        ", expected a name: letters, digits, _ . and -, not . or - at the beginning");
}

void write_file_atomically(const fs::path& path, std::string_view content) {
    if (allocation_failed()) throw std::bad_alloc();  // `content` may lack a part
    const Target target = target_of(path);
    if (target.straight) return write_straight(target, content);
    TemporaryFile temporary(target.path, path);
    if (target.old) temporary.be_like(*target.old, path);
    write_all(temporary.file(), content, path);
    temporary.rename(target.path, path);
}

void remove_temporary_files(const fs::path& folder) {
    std::error_code ignored;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
        const std::string name = entry.path().filename().string();
        if (name.starts_with(temporary_prefix) && name.ends_with(temporary_suffix))
            fs::remove(entry.path(), ignored);
    }
}

void make_folder(const fs::path& folder) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) throw UserError(folder.string() + ": the folder can't be made (" + error.message() + ")");
}

}  // namespace overlap
