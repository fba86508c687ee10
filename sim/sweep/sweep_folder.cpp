#include "sim/sweep/sweep_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace overlap {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds between_checkpoints{1};
constexpr const char *sweep_name = "sweep.json", *progress_name = "progress.json", *csv_name = "points.csv",
                     *jsonl_name = "points.jsonl";

[[noreturn]] void fail_with_errno(const fs::path& path, const std::string& doing) {
    const int reason = errno;
    throw UserError(path.string() + ": cannot be " + doing + ": " + std::strerror(reason) +
                    (reason == ENOSPC || reason == EFBIG || reason == EDQUOT
                         ? " (free some space, then go on with --resume)"
                         : ""));
}

[[noreturn]] void fail_as_damaged(const fs::path& path, const std::string& how) {
    throw UserError(path.string() + ": is damaged: " + how +
                    "; nothing was changed (start again in another folder)");
}

}  // namespace

Descriptor::Descriptor(const char* path, int flags) : number_(::open(path, flags, 0666)) {}

Descriptor::~Descriptor() {
    if (number_ >= 0) ::close(number_);
}

AppendedFile::AppendedFile(fs::path path, std::uint64_t bytes)
    : path_(std::move(path)), file_(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC) {
    if (file_.get() < 0) fail_with_errno(path_, "opened");
    std::vector<char> block(1 << 20);
    while (bytes_ < bytes) {
        const ssize_t got =
            ::read(file_.get(), block.data(), std::min<std::uint64_t>(block.size(), bytes - bytes_));
        if (got < 0) fail_with_errno(path_, "read");
        if (got == 0)
            fail_as_damaged(path_, "has " + std::to_string(bytes_) + " bytes, " + std::to_string(bytes) +
                                       " had been written");
        crc_.process_bytes(block.data(), static_cast<std::size_t>(got));
        bytes_ += static_cast<std::uint64_t>(got);
    }
}

void AppendedFile::append(std::string_view text) {
    while (!text.empty()) {
        const ssize_t written = ::write(file_.get(), text.data(), text.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) fail_with_errno(path_, "written");
        crc_.process_bytes(text.data(), static_cast<std::size_t>(written));
        bytes_ += static_cast<std::uint64_t>(written);
        text.remove_prefix(static_cast<std::size_t>(written));
    }
}

void AppendedFile::cut() {
    if (::ftruncate(file_.get(), static_cast<off_t>(bytes_)) != 0) fail_with_errno(path_, "cut");
}

void AppendedFile::sync() {
    if (::fdatasync(file_.get()) != 0) fail_with_errno(path_, "written");
}

SweepFolder::SweepFolder(fs::path path)
    : path_(std::move(path)), lock_(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC) {
    if (lock_.get() < 0) fail_with_errno(path_, "opened");
    if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0)
        throw UserError(path_.string() + ": another sim sweep is writing there");
}

SweepFolder SweepFolder::create(const fs::path& path, const DesignSpace& space) {
    std::error_code error;
    if (fs::exists(path / sweep_name, error))
        throw UserError(path.string() +
                        ": has a sweep already (--resume goes on with it; or take another folder)");
    for (const char* name : {csv_name, jsonl_name, progress_name})
        if (fs::exists(path / name, error))
            throw UserError((path / name).string() + ": is there already (take another folder)");
    fs::create_directories(path, error);
    if (error) throw UserError(path.string() + ": cannot be created: " + error.message());
    SweepFolder folder(path);
    write_file_atomically(path / sweep_name, space.resolved().dump(2) + "\n");
    folder.begin(space);
    return folder;
}

void SweepFolder::begin(const DesignSpace& space) {
    csv_ = std::make_unique<AppendedFile>(path_ / csv_name, 0);
    jsonl_ = std::make_unique<AppendedFile>(path_ / jsonl_name, 0);
    csv_->cut();
    csv_->append(PointRunner::header(space) + "\n");
    checkpoint();
}

SweepFolder SweepFolder::resume(const fs::path& path, const DesignSpace& space) {
    std::error_code error;
    if (!fs::exists(path / sweep_name, error))
        throw UserError(path.string() + ": has no sweep to go on with (sweep.json is missing)");
    if (read_json_file(path / sweep_name) != space.resolved())
        throw UserError((path / sweep_name).string() + ": is of another sweep, or of another version of '" +
                        space.name() + "' (take another folder)");
    SweepFolder folder(path);
    if (!fs::exists(path / progress_name, error)) {  // killed before the first row, or not by us
        if (fs::exists(path / jsonl_name, error) && fs::file_size(path / jsonl_name, error) > 0)
            fail_as_damaged(path / progress_name, "is missing, but there are results");
        folder.begin(space);
        return folder;
    }
    const Json json = read_json_file(path / progress_name);
    ConfigObject saved(json, (path / progress_name).string());
    const auto count = [](ConfigObject& object, const char* key) {
        return static_cast<std::uint64_t>(object.integer(key, 0, std::numeric_limits<std::int64_t>::max()));
    };
    saved.integer("schema", 1, 1);
    folder.next_ = count(saved, "next");
    folder.points_ = count(saved, "points");
    folder.errors_ = count(saved, "errors");
    const auto open = [&](const char* name) {
        ConfigObject expected = saved.object(name);
        auto file = std::make_unique<AppendedFile>(path / name, count(expected, "bytes"));
        if (file->checksum() != count(expected, "crc32"))
            fail_as_damaged(path / name, "its bytes are not those that had been written");
        expected.finish();
        return file;
    };
    folder.csv_ = open(csv_name);
    folder.jsonl_ = open(jsonl_name);
    saved.finish();
    if (folder.next_ > space.size())
        fail_as_damaged(path / progress_name,
                        "'next' is " + std::to_string(folder.next_) + " of " + std::to_string(space.size()));
    folder.csv_->cut();
    folder.jsonl_->cut();
    return folder;
}

void SweepFolder::append(const Rows& rows, std::uint64_t next) {
    csv_->append(rows.csv);
    jsonl_->append(rows.jsonl);
    next_ = next;
    points_ += rows.points;
    errors_ += rows.errors;
    if (std::chrono::steady_clock::now() - saved_at_ >= between_checkpoints) checkpoint();
}

void SweepFolder::checkpoint() {
    csv_->sync();
    jsonl_->sync();
    const auto state = [](const AppendedFile& file) {
        return Json{{"bytes", file.bytes()}, {"crc32", file.checksum()}};
    };
    write_file_atomically(path_ / progress_name, Json{{"schema", 1},
                                                      {"next", next_},
                                                      {"points", points_},
                                                      {"errors", errors_},
                                                      {csv_name, state(*csv_)},
                                                      {jsonl_name, state(*jsonl_)}}
                                                         .dump(2) +
                                                     "\n");
    saved_at_ = std::chrono::steady_clock::now();
}

}  // namespace overlap
