#include "sim/sweep/sweep_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <boost/crc.hpp>
#include <cerrno>
#include <fstream>
#include <limits>
#include <new>

#include "sim/core/allocation.hpp"
#include "sim/core/config_reader.hpp"
#include "sim/core/digest.hpp"
#include "sim/core/installation.hpp"
#include "sim/core/shown.hpp"

namespace overlap {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds between_checkpoints{1};
constexpr const char *sweep_name = "sweep.json", *progress_name = "progress.json", *csv_name = "points.csv",
                     *jsonl_name = "points.jsonl";

/// True also for a link without target.
bool there(const fs::path& path) {
    std::error_code error;
    return fs::exists(fs::symlink_status(path, error));
}

constexpr int progress_schema = 2;  // 1 had no checksum of its own

/// Checksum of the file's contents except the checksum itself.
std::uint32_t checksum_of(Json json) {
    json.erase("crc32");
    const std::string text = json.dump();
    boost::crc_32_type crc;
    crc.process_bytes(text.data(), text.size());
    return crc.checksum();
}

Json to_json(const Progress::File& file) {
    return {{"bytes", file.bytes}, {"crc32", file.crc32}};
}

std::uint64_t count(ConfigObject& object, const char* key) {
    return static_cast<std::uint64_t>(object.integer(key, 0, std::numeric_limits<std::int64_t>::max()));
}

std::uint32_t checksum(ConfigObject& object) {
    return static_cast<std::uint32_t>(object.integer("crc32", 0, std::numeric_limits<std::uint32_t>::max()));
}

Progress::File file_of(ConfigObject object) {
    const Progress::File file{count(object, "bytes"), checksum(object)};
    object.finish();
    return file;
}

/// Replaces the file as a whole, with a checksum of its contents. Throws UserError.
void write_progress(const std::filesystem::path& path, const Progress& progress, const Json& files) {
    Json json{{"schema", progress_schema},           {"next", progress.next},
              {"points", progress.points},           {"errors", progress.errors},
              {"points.csv", to_json(progress.csv)}, {"points.jsonl", to_json(progress.jsonl)}};
    if (!files.empty()) json["files"] = files;
    json["crc32"] = checksum_of(json);
    write_file_atomically(path, json.dump(2) + "\n");
}

/// Also adds the digests of files to `files`. Throws UserError for a file that write_progress did not write.
Progress read_progress(const std::filesystem::path& path, Json& files) {
    const Json json = read_json_file(path);
    ConfigObject saved(json, path.string());
    saved.integer("schema", progress_schema, progress_schema);
    Progress progress{count(saved, "next"), count(saved, "points"), count(saved, "errors"),
                      file_of(saved.object("points.csv")), file_of(saved.object("points.jsonl"))};
    if (checksum(saved) != checksum_of(json))
        fail_as_damaged(path, "its content is not what had been written");
    if (saved.has("files")) {
        saved.object("files");
        files.update(saved.raw("files"));
    }
    saved.finish();
    return progress;
}

/// Digests in `all` that are not in `known`.
Json without_known(const Json& all, const Json& known) {
    Json rest = Json::object();
    for (const auto& [name, digest] : all.items())
        if (!known.contains(name)) rest[name] = digest;
    return rest;
}

}  // namespace

Json state_of(const DesignSpace& space, const FilesRead* files) {
    Json state = space.resolved();
    std::ifstream program(own_file(), std::ios::binary);
    state["program"] = sha256_of(program);
    state["files"] = files == nullptr ? Json::object() : files->digests();
    return state;
}

std::string difference(const Json& state, const DesignSpace& space, const FilesRead* files,
                       const std::string& subject, const std::string& other) {
    Json own = state_of(space, files);
    if (!state.is_object()) return subject + ": is " + shown(state) + ", expected an object";
    const auto differs = [&](const char* key) { return state.value(key, Json()) != own[key]; };
    if (differs("version"))
        return subject + ": " + other + " is run by sim " + unquoted(state.value("version", Json())) +
               ", not by sim " + unquoted(own["version"]);
    const bool other_program = differs("program");
    Json given = state;
    for (const char* key : {"program", "files"}) {
        given.erase(key);
        own.erase(key);
    }
    if (given != own)
        return subject + ": " + other + " is another sweep, or another version of '" + space.name() + "'";
    if (other_program) return subject + ": " + other + " is run by another build of sim";
    const Json recorded = state.value("files", Json());
    if (!recorded.is_object()) return subject + ": /files: is " + shown(recorded) + ", expected an object";
    return files == nullptr ? "" : files->difference(recorded, other);
}

SweepFolder::SweepFolder(fs::path path, FilesRead* files)
    : path_(std::move(path)),
      files_(files),
      lock_(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (lock_.get() < 0) fail_with_errno(path_, "opened");
    if (::flock(lock_.get(), LOCK_EX | LOCK_NB) == 0) return;
    if (errno == EWOULDBLOCK) throw UserError(path_.string() + ": another sim sweep is writing there");
    fail_with_errno(path_, "locked");
}

SweepFolder SweepFolder::create(const fs::path& path, const DesignSpace& space, FilesRead* files) {
    std::error_code error;
    fs::create_directories(path, error);
    if (error) throw UserError(path.string() + ": cannot be created: " + error.message());
    SweepFolder folder(path, files);  // locked before any check: another process may be starting there
    if (there(path / sweep_name))
        throw UserError(path.string() +
                        ": has a sweep already (--resume continues it; or use another folder)");
    for (const char* name : {csv_name, jsonl_name, progress_name})
        if (there(path / name))
            throw UserError((path / name).string() + ": exists already (use another folder)");
    const Json state = state_of(space, files);
    folder.vouched_ = state["files"];
    write_file_atomically(path / sweep_name, state.dump(2) + "\n");
    folder.begin(space);
    return folder;
}

void SweepFolder::begin(const DesignSpace& space) {
    const std::string header = PointRunner::header(space) + "\n";
    csv_ = std::make_unique<AppendedFile>(path_ / csv_name, 0);
    csv_->cut_beginning_of(header);
    jsonl_ = std::make_unique<AppendedFile>(path_ / jsonl_name, 0);
    jsonl_->cut_beginning_of("");
    csv_->append(header);
    checkpoint();
}

SweepFolder SweepFolder::resume(const fs::path& path, const DesignSpace& space, FilesRead* files) {
    if (!there(path / sweep_name))
        throw UserError(path.string() + ": has no sweep to resume (sweep.json is missing)");
    SweepFolder folder(path, files);
    Json state = read_json_file(path / sweep_name);
    const auto require_same = [&] {
        const std::string differs =
            difference(state, space, files, (path / sweep_name).string(), "the begun sweep");
        if (!differs.empty())
            throw UserError(differs + " (go on with what it was begun with, or take another folder)");
    };
    require_same();
    folder.vouched_ = state["files"];
    remove_temporary_files(path);
    if (!there(path / progress_name)) {  // killed before the first row, or not a sweep of ours
        std::error_code error;
        const std::uintmax_t results = fs::file_size(path / jsonl_name, error);
        if (!error && results > 0) fail_as_damaged(path / progress_name, "is missing, but there are results");
        folder.begin(space);
        return folder;
    }
    folder.progress_ = read_progress(path / progress_name, state["files"]);
    require_same();
    if (files != nullptr) files->add(state["files"]);
    const auto open = [&](const char* name, const Progress::File& saved) {
        if (!there(path / name)) fail_as_damaged(path / name, "is missing");
        auto file = std::make_unique<AppendedFile>(path / name, saved.bytes);
        if (file->checksum() != saved.crc32)
            fail_as_damaged(path / name, "its bytes are not those that had been written");
        return file;
    };
    folder.csv_ = open(csv_name, folder.progress_.csv);
    folder.jsonl_ = open(jsonl_name, folder.progress_.jsonl);
    folder.require_rows_up_to_next(space);
    folder.csv_->cut();
    folder.jsonl_->cut();
    return folder;
}

/// Whether `next` comes after the last row with no point in between.
void SweepFolder::require_rows_up_to_next(const DesignSpace& space) const {
    const auto refuse = [&](const std::string& how) { fail_as_damaged(path_ / progress_name, how); };
    const std::string next = "'next' is " + std::to_string(progress_.next);
    if (progress_.next > space.size()) refuse(next + " of " + std::to_string(space.size()));
    if (jsonl_->lines() != progress_.points)
        refuse("'points' is " + std::to_string(progress_.points) + ", " + jsonl_name + " has " +
               std::to_string(jsonl_->lines()) + " rows");
    std::uint64_t after = 0;  // the first combination after the last row
    if (progress_.points > 0) {
        const Json row = parse_json(jsonl_->last_line(), (path_ / jsonl_name).string() + ": last row");
        after =
            static_cast<std::uint64_t>(ConfigObject(row, (path_ / jsonl_name).string() + ": last row")
                                           .integer("point", 0, std::numeric_limits<std::int64_t>::max())) +
            1;
    }
    if (progress_.next < after) refuse(next + ", the last row is of point " + std::to_string(after - 1));
    for (std::uint64_t number = after; number < progress_.next; ++number) {
        // Also true if its constraints fail, because such a point has a row with the reason
        bool is_point = true;
        try {
            is_point = space.point(number).has_value();
        } catch (const UserError&) {
        }
        if (is_point) refuse(next + ", point " + std::to_string(number) + " has no row");
    }
}

void SweepFolder::append(const Rows& rows, std::uint64_t next) {
    if (allocation_failed()) throw std::bad_alloc();  // `rows` may lack a part
    if (files_ != nullptr) files_->add(rows.files);
    csv_->append(rows.csv);
    jsonl_->append(rows.jsonl);
    progress_.next = next;
    progress_.points += rows.points;
    progress_.errors += rows.errors;
    if (std::chrono::steady_clock::now() - saved_at_ >= between_checkpoints) checkpoint();
}

void SweepFolder::checkpoint() {
    csv_->sync();
    jsonl_->sync();
    progress_.csv = {csv_->bytes(), csv_->checksum()};
    progress_.jsonl = {jsonl_->bytes(), jsonl_->checksum()};
    write_progress(path_ / progress_name, progress_,
                   without_known(files_ == nullptr ? Json::object() : files_->digests(), vouched_));
    saved_at_ = std::chrono::steady_clock::now();
}

}  // namespace overlap
