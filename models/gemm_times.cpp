#include "models/gemm_times.hpp"

namespace overlap {
namespace {

constexpr Range sane_time_us{1e-3, 1e9};

}  // namespace

std::string gemm_times_key(DType dtype, bool accumulate) {
    return name_of(dtype) + (accumulate ? "_accumulated_us" : "_us");
}

GemmTimes read_gemm_times(const std::filesystem::path& path) {
    return read_gemm_times(read_config_file(path));
}

GemmTimes read_gemm_times(const ConfigFile& file) {
    ConfigObject config = file.view();
    GemmTimes times;
    if (!config.has("measured_gemms")) return times;
    ConfigObject group = config.object("measured_gemms");
    group.object("provenance");
    for (std::size_t type = 0; type < dtype_names.size(); ++type) {
        for (const bool accumulate : {false, true}) {
            const std::string key = gemm_times_key(static_cast<DType>(type), accumulate);
            if (!group.has(key)) continue;
            ConfigObject rows = group.object(key);
            for (const std::string& name : rows.keys()) {
                GemmShape shape = parse_shape(name, file.name + ": /measured_gemms/" + key + ": key");
                shape.dtype = static_cast<DType>(type);
                shape.accumulate = accumulate;
                times[shape] = microseconds(rows.number(name, sane_time_us));
            }
        }
    }
    group.finish();
    return times;
}

}  // namespace overlap
