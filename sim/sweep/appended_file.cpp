#include "sim/sweep/appended_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "sim/core/errors.hpp"

namespace overlap {
namespace {

constexpr std::uint64_t block = 1 << 20;

Descriptor opened(const std::filesystem::path& path) {
    Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (file.get() < 0 && errno == ELOOP)
        throw UserError(path.string() + ": is a link, expected a file of this sweep");
    struct stat status {};
    if (file.get() < 0 || ::fstat(file.get(), &status) != 0) fail_with_errno(path, "opened");
    if (!S_ISREG(status.st_mode)) throw UserError(path.string() + ": is no regular file");
    return file;
}

}  // namespace

AppendedFile::AppendedFile(std::filesystem::path path, std::uint64_t bytes)
    : path_(std::move(path)), file_(opened(path_)) {
    while (bytes_ < bytes) {
        const std::string part = read(bytes_, std::min(block, bytes - bytes_));
        if (part.empty())
            fail_as_damaged(path_, "has " + std::to_string(bytes_) + " bytes, " + std::to_string(bytes) +
                                       " had been written");
        add(part);
    }
    ::lseek(file_.get(), static_cast<off_t>(bytes_), SEEK_SET);
}

void AppendedFile::add(std::string_view text) {
    crc_.process_bytes(text.data(), text.size());
    bytes_ += text.size();
    for (auto at = text.find('\n'); at != text.npos; at = text.find('\n', at + 1)) ++lines_;
}

/// Returns fewer than `count` bytes only at the end of the file.
std::string AppendedFile::read(std::uint64_t from, std::uint64_t count) const {
    std::string text(count, '\0');
    std::uint64_t size = 0;
    while (size < count) {
        const ssize_t got =
            ::pread(file_.get(), text.data() + size, count - size, static_cast<off_t>(from + size));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) fail_with_errno(path_, "read");
        if (got == 0) break;
        size += static_cast<std::uint64_t>(got);
    }
    text.resize(size);
    return text;
}

void AppendedFile::append(std::string_view text) {
    write_all(file_, text, path_);
    add(text);
}

void AppendedFile::cut_beginning_of(std::string_view expected) {
    const std::string found = read(bytes_, expected.size() + 1);
    if (!expected.starts_with(found)) fail_as_damaged(path_, "has content that is not of this sweep");
    cut();
}

void AppendedFile::cut() {
    if (::ftruncate(file_.get(), static_cast<off_t>(bytes_)) != 0) fail_with_errno(path_, "cut");
}

void AppendedFile::sync() {
    overlap::sync(file_, path_);
}

std::string AppendedFile::last_line() const {
    for (std::uint64_t length = std::min<std::uint64_t>(4096, bytes_);;
         length = std::min(2 * length, bytes_)) {
        std::string text = read(bytes_ - length, length);
        if (text.ends_with('\n')) text.pop_back();
        const auto before = text.rfind('\n');
        if (before != std::string::npos) return text.substr(before + 1);
        if (length == bytes_) return text;
    }
}

void fail_as_damaged(const std::filesystem::path& path, const std::string& how) {
    throw UserError(path.string() + ": is damaged: " + how +
                    "; nothing was changed (start again in another folder)");
}

}  // namespace overlap
