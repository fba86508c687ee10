#include "sim/core/files_read.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <fstream>

#include "sim/core/digest.hpp"
#include "sim/core/errors.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"

namespace overlap {
namespace {

namespace fs = std::filesystem;

std::atomic<FilesRead*> recorder{nullptr};
constexpr std::string_view in_configs = "configs/";

fs::path normal(const fs::path& path) {
    return fs::absolute(path).lexically_normal();
}

/// `file` relative to `folder`; empty if it is not below it.
std::string below(const fs::path& folder, const fs::path& file) {
    const fs::path relative = file.lexically_relative(folder);
    return relative.empty() || *relative.begin() == ".." ? "" : relative.generic_string();
}

std::string changed(const fs::path& path) {
    return path.string() + ": has changed since it was read; results of both contents would be mixed";
}

/// Without open_input, which records.
std::string digest_of(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return sha256_of(in);
}

bool has_digest(const Json& digests, const Json& digest) {
    return std::ranges::any_of(digests, [&](const Json& one) { return one == digest; });
}

}  // namespace

FilesRead::FilesRead(const fs::path& configs, const fs::path& own, const std::vector<fs::path>& unwatched)
    : configs_(normal(configs)), own_(normal(own)), unwatched_(mapped(unwatched, normal)) {
    recorder = this;
}

FilesRead::~FilesRead() {
    recorder = nullptr;
}

std::string FilesRead::name_of(const fs::path& file) const {
    if (const std::string name = below(configs_, file); !name.empty())
        return valid_utf8(std::string(in_configs) + name);
    const std::string name = below(own_, file);
    return valid_utf8(name.empty() ? file.generic_string() : "./" + name);
}

fs::path FilesRead::path_of(const std::string& name) const {
    if (name.starts_with(in_configs)) return configs_ / name.substr(in_configs.size());
    return (own_ / name).lexically_normal();
}

bool FilesRead::is_recording() {
    return recorder != nullptr;
}

void FilesRead::note(const fs::path& file) {
    if (FilesRead* const here = recorder) here->note_file(file);
}

void FilesRead::note_file(const fs::path& file) {
    struct stat status {};
    if (::stat(file.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return;
    const fs::path path = normal(file);
    if (contains(unwatched_, path)) return;
    const auto nanoseconds = [](const timespec& time) { return time.tv_sec * 1'000'000'000 + time.tv_nsec; };
    std::vector<std::int64_t> state{static_cast<std::int64_t>(status.st_dev),
                                    static_cast<std::int64_t>(status.st_ino), status.st_size,
                                    nanoseconds(status.st_mtim), nanoseconds(status.st_ctim)};
    const std::string name = name_of(path);
    const std::scoped_lock lock(mutex_);
    File& known = files_[name];
    if (known.state == state) return;
    const std::string digest = digest_of(file);
    if (!known.digest.empty() && known.digest != digest) throw ChangedFile(changed(file.lexically_normal()));
    known = {file.lexically_normal(), digest, std::move(state)};
}

Json FilesRead::digests() const {
    const std::scoped_lock lock(mutex_);
    Json digests = Json::object();
    for (const auto& [name, file] : files_) digests[name] = file.digest;
    return digests;
}

void FilesRead::add(const Json& digests) {
    const std::scoped_lock lock(mutex_);
    for (const auto& [name, digest] : digests.items()) {
        File& known = files_[name];
        if (known.digest.empty()) known = {path_of(name), digest.get<std::string>(), {}};
        if (Json(known.digest) != digest) throw ChangedFile(changed(known.path));
    }
}

std::string FilesRead::difference(const Json& recorded, const std::string& other) const {
    const Json own = digests();
    const std::scoped_lock lock(mutex_);
    for (const auto& [name, digest] : recorded.items()) {
        const auto found = files_.find(name);
        const fs::path path = found == files_.end() ? path_of(name) : found->second.path;
        if (found != files_.end() && Json(found->second.digest) == digest) continue;
        std::error_code ignored;
        if (found == files_.end()) {
            if (has_digest(own, digest)) continue;  // the same file in another place
            if (!fs::is_regular_file(path, ignored))
                return path.string() + ": is missing; " + other + " has read it";
            if (Json(digest_of(path)) == digest) continue;
        }
        return path.string() + ": has other content than the file that " + other + " has read";
    }
    for (const auto& [name, digest] : own.items())
        if (!recorded.contains(name) && !has_digest(recorded, digest))
            return files_.at(name).path.string() + ": is not one of the files that " + other + " has read";
    return "";
}

}  // namespace overlap
