#pragma once

#include <chrono>
#include <memory>

#include "sim/sweep/appended_file.hpp"
#include "sim/sweep/progress_file.hpp"
#include "sim/sweep/rows.hpp"

namespace overlap {

/// The output folder of a sweep: sweep.json (what is run), points.csv and points.jsonl (results in point
/// order), progress.json (how much of both is on the disk, with checksums; replaced as a whole, about once a
/// second). After a kill at any moment a resumed sweep cuts what progress.json does not vouch for and goes on
/// there, so nothing is lost or doubled, and the files end as they would have without the kill. A folder
/// whose files do not fit each other is refused as it is.
class SweepFolder {
public:
    /// Throws UserError where `folder` has a sweep already, or can't be written.
    static SweepFolder create(const std::filesystem::path& folder, const DesignSpace& space);
    /// Throws UserError where `folder` has no sweep, another one, or damaged files.
    static SweepFolder resume(const std::filesystem::path& folder, const DesignSpace& space);

    /// The first combination that has not been run.
    std::uint64_t next() const { return progress_.next; }
    std::uint64_t points() const { return progress_.points; }
    std::uint64_t errors() const { return progress_.errors; }
    const std::filesystem::path& path() const { return path_; }

    /// Rows of the combinations from next() up to, and without, `next`.
    void append(const Rows& rows, std::uint64_t next);
    void checkpoint();

private:
    explicit SweepFolder(std::filesystem::path path);
    void begin(const DesignSpace& space);
    void require_rows_up_to_next(const DesignSpace& space) const;

    std::filesystem::path path_;
    Descriptor lock_;
    Progress progress_;
    std::unique_ptr<AppendedFile> csv_, jsonl_;
    std::chrono::steady_clock::time_point saved_at_;
};

}  // namespace overlap
