#pragma once

#include <chrono>
#include <memory>

#include "sim/core/files_read.hpp"
#include "sim/sweep/appended_file.hpp"
#include "sim/sweep/rows.hpp"

namespace overlap {

/// How much of a sweep is on the disk.
struct Progress {
    struct File {
        std::uint64_t bytes = 0;
        std::uint32_t crc32 = 0;  ///< of these bytes
    };
    std::uint64_t next = 0;  ///< the first combination that has not run
    std::uint64_t points = 0, errors = 0;
    File csv, jsonl;
};

/// What a sweep depends on: its space, the program, and the files that have been read (none: not recorded).
Json state_of(const DesignSpace& space, const FilesRead* files);
/// What differs between the state of another process, or of an earlier one, and that of this one: one line that
/// begins with the file that differs, or with `subject`; empty if nothing does.
std::string difference(const Json& state, const DesignSpace& space, const FilesRead* files,
                       const std::string& subject, const std::string& other);

/// The output folder of a sweep: sweep.json (its state_of), points.csv and points.jsonl (results in point order),
/// progress.json (how much of both is on the disk, with checksums, and files read since; replaced as a whole about
/// once a second). After a kill at any moment, a resumed sweep cuts the files to what progress.json confirms and
/// continues there: nothing is lost or doubled, and the final files are the same as without the kill. A folder with
/// inconsistent files is refused and left unchanged.
class SweepFolder {
public:
    /// Throws UserError if `folder` already has a sweep, or can't be written.
    static SweepFolder create(const std::filesystem::path& folder, const DesignSpace& space,
                              FilesRead* files = nullptr);
    /// Throws UserError if `folder` has no sweep, another sweep, or damaged files, or if a file that the sweep has
    /// read has changed.
    static SweepFolder resume(const std::filesystem::path& folder, const DesignSpace& space,
                              FilesRead* files = nullptr);

    /// The first combination that has not run.
    std::uint64_t next() const { return progress_.next; }
    std::uint64_t points() const { return progress_.points; }
    std::uint64_t errors() const { return progress_.errors; }
    const std::filesystem::path& path() const { return path_; }

    /// Appends the rows of the combinations from next() up to, but without, `next`.
    void append(const Rows& rows, std::uint64_t next);
    void checkpoint();

private:
    SweepFolder(std::filesystem::path path, FilesRead* files);
    void begin(const DesignSpace& space);
    void require_rows_up_to_next(const DesignSpace& space) const;

    std::filesystem::path path_;
    FilesRead* files_;  ///< null: not recorded
    Json vouched_;      ///< digests in sweep.json
    Descriptor lock_;
    Progress progress_;
    std::unique_ptr<AppendedFile> csv_, jsonl_;
    std::chrono::steady_clock::time_point saved_at_;
};

}  // namespace overlap
