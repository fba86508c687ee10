#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace overlap {

/// An open file of the operating system, closed by the destructor; −1 if it could not be opened.
class Descriptor {
public:
    explicit Descriptor(int number) : number_(number) {}
    Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
    Descriptor& operator=(Descriptor&&) = delete;
    ~Descriptor();
    int get() const { return number_; }
    /// Reports errors that a file system returns only when the file is closed (NFS: quota) as UserError.
    void close(const std::filesystem::path& path);

private:
    int number_;
};

/// Writes all of `content`. Throws UserError that names `path`.
void write_all(const Descriptor& file, std::string_view content, const std::filesystem::path& path);
/// Returns when the file is on the disk. Throws UserError that names `path`.
void sync(const Descriptor& file, const std::filesystem::path& path);
/// Throws UserError: "<path>: cannot be <doing>: <text of errno>".
[[noreturn]] void fail_with_errno(const std::filesystem::path& path, const std::string& doing);

/// Throws UserError if write_file_atomically could not write to the path; call it before long work. Does not
/// open pipes, whose reader may not exist yet.
void require_writable(const std::filesystem::path& path);

/// require_writable for a command's outputs; empty ones are not asked for. Throws UserError also if two are the same
/// file, or one is also an input.
void require_outputs(std::span<const std::filesystem::path> outputs,
                     std::span<const std::filesystem::path> inputs = {});

/// Throws UserError, beginning with `what`, for a name that could lead to another folder as part of a path: only
/// letters, digits and _ . - are allowed, not . or - at the beginning.
void require_file_name(const std::string& name, const std::string& what);

/// All output files are written by this function. `path` may name
/// - nothing, or a regular file: a temporary file beside it is written, synced and renamed, so the name
///   always has either the old or the complete new content. Mode and, if the system allows it, owner stay;
///   other hard links keep the old content.
/// - a link: its target is written in the same way, and the link stays.
/// - a pipe, a terminal or another character device, or the standard output or error: written to directly.
/// Anything else (folder, socket, disk), and a failure at any step, is a UserError that
/// leaves no temporary file.
void write_file_atomically(const std::filesystem::path& path, std::string_view content);

/// Creates an output folder and its parents if missing. Throws UserError.
void make_folder(const std::filesystem::path& folder);

/// Removes temporary files of killed writers. Only for a folder in which no other process writes.
void remove_temporary_files(const std::filesystem::path& folder);

}  // namespace overlap
