#pragma once

#include <boost/crc.hpp>

#include <cstdint>

#include "sim/core/output_file.hpp"

namespace overlap {

/// A file that only grows; appended data are on the disk after sync(). Throws UserError on failure.
class AppendedFile {
public:
    /// Opens or creates the file for appending after its first `bytes`. Refuses links.
    AppendedFile(std::filesystem::path path, std::uint64_t bytes);

    void append(std::string_view text);
    /// Cuts the file after the known bytes, which must be a prefix of `expected`.
    void cut_beginning_of(std::string_view expected);
    /// Cuts the file after the known bytes.
    void cut();
    void sync();

    std::uint64_t bytes() const { return bytes_; }
    std::uint32_t checksum() const { return crc_.checksum(); }
    std::uint64_t lines() const { return lines_; }
    /// The last of the lines(), without its line break; empty if there is none.
    std::string last_line() const;

private:
    void add(std::string_view text);
    std::string read(std::uint64_t from, std::uint64_t count) const;

    std::filesystem::path path_;
    Descriptor file_;
    std::uint64_t bytes_ = 0, lines_ = 0;
    boost::crc_32_type crc_;
};

/// Throws UserError: "<path>: is damaged: <how>; …".
[[noreturn]] void fail_as_damaged(const std::filesystem::path& path, const std::string& how);

}  // namespace overlap
