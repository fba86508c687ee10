#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

namespace overlap {

/// An open file of the operating system, closed at the end; −1 where it could not be opened.
class Descriptor {
public:
    explicit Descriptor(int number) : number_(number) {}
    Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
    Descriptor& operator=(Descriptor&&) = delete;
    ~Descriptor();
    int get() const { return number_; }
    /// What a file system has to say only when the file is closed (NFS: quota) is a UserError.
    void close(const std::filesystem::path& path);

private:
    int number_;
};

/// Writes all of `content`. Throws UserError, which names `path`.
void write_all(const Descriptor& file, std::string_view content, const std::filesystem::path& path);
/// Returns once the file is on the disk. Throws UserError, which names `path`.
void sync(const Descriptor& file, const std::filesystem::path& path);
/// Throws UserError: "<path>: cannot be <doing>: <what errno says>".
[[noreturn]] void fail_with_errno(const std::filesystem::path& path, const std::string& doing);

/// Refuses a path that write_file_atomically could not write to, before work for it is done. Throws
/// UserError. Does not open pipes, whose other side might not be there yet.
void require_writable(const std::filesystem::path& path);

/// The one writer of output files. `path` may name
/// - nothing, or a regular file: a temporary file beside it is written, put on the disk and renamed, so that
///   at any moment the name has the old content or all of the new. The mode stays, and the owner where the
///   system allows it; other hard links keep the old content.
/// - a link: what it leads to is written so, and the link stays.
/// - a pipe, a terminal or another character device, or the standard output or error: written straight into.
/// Anything else (folder, socket, disk), and a failure at any step, is a
/// UserError that leaves no temporary file.
void write_file_atomically(const std::filesystem::path& path, std::string_view content);

/// Removes temporary files of writers that were killed. For a folder in which nobody else writes.
void remove_temporary_files(const std::filesystem::path& folder);

}  // namespace overlap
