#pragma once

#include <boost/crc.hpp>

#include <chrono>
#include <utility>

#include "sim/sweep/rows.hpp"

namespace overlap {

/// An open file of the operating system; −1 where it could not be opened.
class Descriptor {
public:
    Descriptor(const char* path, int flags);
    Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
    Descriptor& operator=(Descriptor&&) = delete;
    ~Descriptor();
    int get() const { return number_; }

private:
    int number_;
};

/// A file that only grows; what was appended is on the disk after sync(). Throws UserError where it can't be.
class AppendedFile {
public:
    /// Opens the file, which is created where it is not there, behind its first `bytes`.
    AppendedFile(std::filesystem::path path, std::uint64_t bytes);

    void append(std::string_view text);
    /// Takes away what lies behind the bytes that are known.
    void cut();
    void sync();
    std::uint64_t bytes() const { return bytes_; }
    std::uint32_t checksum() const { return crc_.checksum(); }

private:
    std::filesystem::path path_;
    Descriptor file_;
    std::uint64_t bytes_ = 0;
    boost::crc_32_type crc_;
};

/// The output folder of a sweep: sweep.json (what is run), points.csv and points.jsonl (results in point
/// order), progress.json (how much of both is on the disk, with checksums; replaced as a whole, about once a
/// second). After a kill at any moment a resumed sweep cuts what progress.json does not vouch for and goes on
/// there, so nothing is lost or doubled, and the files end as they would have without the kill.
class SweepFolder {
public:
    /// Throws UserError where `folder` has a sweep already, or can't be written.
    static SweepFolder create(const std::filesystem::path& folder, const DesignSpace& space);
    /// Throws UserError where `folder` has no sweep, another one, or damaged files.
    static SweepFolder resume(const std::filesystem::path& folder, const DesignSpace& space);

    /// The first combination that has not been run.
    std::uint64_t next() const { return next_; }
    std::uint64_t points() const { return points_; }
    std::uint64_t errors() const { return errors_; }
    const std::filesystem::path& path() const { return path_; }

    /// Rows of the combinations from next() up to, and without, `next`.
    void append(const Rows& rows, std::uint64_t next);
    void checkpoint();

private:
    explicit SweepFolder(std::filesystem::path path);
    void begin(const DesignSpace& space);

    std::filesystem::path path_;
    Descriptor lock_;
    std::uint64_t next_ = 0, points_ = 0, errors_ = 0;
    std::unique_ptr<AppendedFile> csv_, jsonl_;
    std::chrono::steady_clock::time_point saved_at_;
};

}  // namespace overlap
