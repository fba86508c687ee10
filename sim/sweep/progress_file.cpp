#include "sim/sweep/progress_file.hpp"

#include <boost/crc.hpp>

#include "sim/core/config_reader.hpp"
#include "sim/sweep/appended_file.hpp"

namespace overlap {
namespace {

constexpr int schema = 2;  // 1 had no checksum of its own

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

}  // namespace

void write_progress(const std::filesystem::path& path, const Progress& progress) {
    Json json{{"schema", schema},
              {"next", progress.next},
              {"points", progress.points},
              {"errors", progress.errors},
              {"points.csv", to_json(progress.csv)},
              {"points.jsonl", to_json(progress.jsonl)}};
    json["crc32"] = checksum_of(json);
    write_file_atomically(path, json.dump(2) + "\n");
}

Progress read_progress(const std::filesystem::path& path) {
    const Json json = read_json_file(path);
    ConfigObject saved(json, path.string());
    saved.integer("schema", schema, schema);
    Progress progress{count(saved, "next"), count(saved, "points"), count(saved, "errors"),
                      file_of(saved.object("points.csv")), file_of(saved.object("points.jsonl"))};
    if (checksum(saved) != checksum_of(json))
        fail_as_damaged(path, "its content is not what had been written");
    saved.finish();
    return progress;
}

}  // namespace overlap
