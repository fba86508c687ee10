#include "models/gemm_times.hpp"

#include "models/fitted_keys.hpp"

namespace overlap {
namespace {

constexpr Range sane_time_us{1e-3, 1e9};
constexpr int most_tiles = 1'000'000'000;

std::string kind_of(DType dtype, bool accumulate) {
    return name_of(dtype) + (accumulate ? "_accumulated" : "");
}

/// A table of the group: a number for each shape, read by `read` from the row of that shape.
using ReadRow = std::function<void(ConfigObject& row, const std::string& name, const GemmShape&, GemmTimes&)>;
InputKey<GemmTimes> table_key(const std::string& key, const std::string& doc, const Json& value,
                              GemmShape shape, const ReadRow& read) {
    const auto read_table = [=](ConfigObject& group, const std::string&, GemmTimes& to) {
        group.object(key);  // throws if it is none
        // Each row is read as an object of its own: a key is looked for in all keys of its object.
        for (const auto& item : group.raw(key).items()) {
            const std::string place = "/measured_gemms/" + key;
            GemmShape one = parse_shape(item.key(), group.file() + ": " + place + ": key");
            one.dtype = shape.dtype;
            one.accumulate = shape.accumulate;
            const Json row{{item.key(), item.value()}};
            ConfigObject alone(row, group.file(), place);
            read(alone, item.key(), one, to);
        }
    };
    const Json names{{"pattern", "^[1-9][0-9]*x[1-9][0-9]*x[1-9][0-9]*$"}};
    return InputKey<GemmTimes>(key, map_schema(doc, names, value), read_table).optional();
}

std::vector<InputKey<GemmTimes>> keys_of_type(DType dtype, bool accumulate) {
    GemmShape shape;
    shape.dtype = dtype;
    shape.accumulate = accumulate;
    const std::string times = gemm_times_key(dtype, accumulate);
    const Json time{{"type", "number"}, {"minimum", sane_time_us.low}, {"maximum", sane_time_us.high}};
    const Json count{{"type", "integer"}, {"minimum", 1}, {"maximum", most_tiles}};
    const auto read_time = [](ConfigObject& row, const std::string& name, const GemmShape& of,
                              GemmTimes& to) { to[of].time = microseconds(row.number(name, sane_time_us)); };
    const auto read_tiles = [times](ConfigObject& row, const std::string& name, const GemmShape& of,
                                    GemmTimes& to) {
        const std::int64_t tiles = row.integer(name, 1, most_tiles);
        const auto timed = to.find(of);
        if (timed == to.end())
            row.fail(name, "is " + std::to_string(tiles) + ", expected a shape of " + times + " only");
        timed->second.tiles = static_cast<int>(tiles);
    };
    return {
        table_key(times, "Time by shape MxNxK, microseconds.", time, shape, read_time),
        table_key(
            gemm_tiles_key(dtype, accumulate),
            "Tiles that the library cut C into, by shape; a split K counts once. Of shapes with a time only.",
            count, shape, read_tiles)};
}

const std::vector<InputKey<GemmTimes>>& gemm_times_keys() {
    static const std::vector<InputKey<GemmTimes>> keys = [] {
        std::vector made{
            provenance_key<GemmTimes>("What was measured, in which files, and what is kept of it.")};
        for (std::size_t type = 0; type < dtype_names.size(); ++type)
            for (const bool accumulate : {false, true})
                append(made, keys_of_type(static_cast<DType>(type), accumulate));
        return made;
    }();
    return keys;
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
    if (!config.has("measured_gemms")) return {};
    ConfigObject group = config.object("measured_gemms");
    return read_keys<GemmTimes>(group, gemm_times_keys());
}

Json measured_gemms_schema() {
    return keys_schema(
        "Library GEMMs that were measured alone; those of keys with \"accumulated\" read C as well.",
        gemm_times_keys());
}

}  // namespace overlap
