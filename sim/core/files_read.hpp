#pragma once

#include <filesystem>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/core/json.hpp"

namespace overlap {

/// A file has other content than when it was read before: what was computed from both would not fit together.
class ChangedFile : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// The SHA-256 of every regular file that open_input opens while an object of this class exists, at most one at a time.
/// Thread-safe.
class FilesRead {
public:
    /// Files below `configs` and below `own` have names relative to these folders, so that a moved folder has the same
    /// names. Files of `unwatched` are not recorded.
    FilesRead(const std::filesystem::path& configs, const std::filesystem::path& own,
              const std::vector<std::filesystem::path>& unwatched);
    FilesRead(const FilesRead&) = delete;
    FilesRead& operator=(const FilesRead&) = delete;
    ~FilesRead();

    /// Whether one of this process is recording.
    static bool is_recording();
    /// Called by open_input. Throws ChangedFile if the content differs from what was read before.
    static void note(const std::filesystem::path& file);

    /// Digests by name.
    Json digests() const;
    /// Digests that another process, or an earlier one, has recorded. Throws ChangedFile if one differs.
    void add(const Json& digests);
    /// What differs between the files read and those recorded by an earlier or another process, in one line that
    /// names the first such file; empty if nothing does. `other` names that process.
    std::string difference(const Json& recorded, const std::string& other) const;

private:
    struct File {
        std::filesystem::path path;
        std::string digest;
        std::vector<std::int64_t> state;  ///< of stat(), which changes with the content
    };
    std::string name_of(const std::filesystem::path& file) const;
    std::filesystem::path path_of(const std::string& name) const;
    void note_file(const std::filesystem::path& file);

    std::filesystem::path configs_, own_;
    std::vector<std::filesystem::path> unwatched_;
    mutable std::mutex mutex_;
    std::map<std::string, File> files_;
};

}  // namespace overlap
