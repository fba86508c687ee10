#include "models/gemm_times.hpp"

namespace overlap {
namespace {

constexpr Range sane_time_us{1e-3, 1e9};
constexpr std::int64_t most_tiles = 1'000'000'000;

std::string kind_of(DType dtype, bool accumulate) {
    return name_of(dtype) + (accumulate ? "_accumulated" : "");
}

/// Reads the table `key` if the group has it: calls `take` with name, shape and value of each row.
template <class Take>
void read_table(ConfigObject& group, const std::string& key, DType dtype, bool accumulate, Take&& take) {
    if (!group.has(key)) return;
    group.object(key);  // throws if it is none
    // Each row is read as an object of its own: a key is looked for in all keys of its object.
    for (const auto& item : group.raw(key).items()) {
        const std::string place = "/measured_gemms/" + key;
        GemmShape shape = parse_shape(item.key(), group.file() + ": " + place + ": key");
        shape.dtype = dtype;
        shape.accumulate = accumulate;
        Json row = Json::object();
        row[item.key()] = item.value();
        ConfigObject alone(row, group.file(), place);
        take(alone, item.key(), shape);
    }
}

}  // namespace

std::string gemm_times_key(DType dtype, bool accumulate) {
    return kind_of(dtype, accumulate) + "_us";
}

std::string gemm_tiles_key(DType dtype, bool accumulate) {
    return kind_of(dtype, accumulate) + "_tiles";
}

GemmTimes read_gemm_times(const std::filesystem::path& path) {
    return read_gemm_times(read_config_file(path, "calibration"));
}

GemmTimes read_gemm_times(const ConfigFile& file) {
    ConfigObject config = file.view();
    GemmTimes gemms;
    if (!config.has("measured_gemms")) return gemms;
    ConfigObject group = config.object("measured_gemms");
    group.object("provenance");
    for (std::size_t type = 0; type < dtype_names.size(); ++type) {
        for (const bool accumulate : {false, true}) {
            const auto dtype = static_cast<DType>(type);
            const std::string times = gemm_times_key(dtype, accumulate);
            read_table(group, times, dtype, accumulate,
                       [&](ConfigObject& rows, const std::string& name, const GemmShape& shape) {
                           gemms[shape].time = microseconds(rows.number(name, sane_time_us));
                       });
            read_table(group, gemm_tiles_key(dtype, accumulate), dtype, accumulate,
                       [&](ConfigObject& rows, const std::string& name, const GemmShape& shape) {
                           const std::int64_t tiles = rows.integer(name, 1, most_tiles);
                           const auto timed = gemms.find(shape);
                           if (timed == gemms.end())
                               rows.fail(name, "is " + std::to_string(tiles) + ", expected a shape of " +
                                                   times + " only");
                           timed->second.tiles = static_cast<int>(tiles);
                       });
        }
    }
    group.finish();
    return gemms;
}

}  // namespace overlap
