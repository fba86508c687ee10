#include "models/gemm_parameters.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "models/overlap_gemm.hpp"
#include "sim/core/whole_number.hpp"
#include "sim/topology/device.hpp"

namespace overlap {
namespace {

constexpr std::int64_t longest_tile_side = 4096;

GemmTile parse_tile(const ConfigObject& tiles, const std::string& key) {
    const auto cross = key.find('x');
    GemmTile tile;
    const auto read = [&](std::size_t begin, std::size_t end, std::int64_t& out) {
        const auto [stop, error] = std::from_chars(key.data() + begin, key.data() + end, out);
        return error == std::errc() && stop == key.data() + end && out >= 1 && out <= longest_tile_side;
    };
    if (cross == std::string::npos || !read(0, cross, tile.m) || !read(cross + 1, key.size(), tile.n))
        tiles.fail(key, "is no tile, expected rows x columns such as 256x128");
    return tile;
}

GemmParameters read_one(ConfigObject& group) {
    GemmParameters parameters;
    if (!group.raw("provenance").is_object()) group.fail("provenance", "is no object");
    if (group.has("library")) group.text("library");  // library_of_gemms
    parameters.compute_units = sourced_whole(group, "compute_units", {1, 100'000});
    parameters.k_step = static_cast<std::int64_t>(sourced_whole(group, "k_step", {1, 4096}));
    for (const GemmField& field : gemm_fields()) field.set(parameters, group.sourced(field.key, field.range));
    ConfigObject tiles = group.object("tiles");
    for (const std::string& key : tiles.keys()) {
        GemmTile tile = parse_tile(tiles, key);
        tile.efficiency = tiles.sourced(key, {0.001, 1.5});
        parameters.tiles.push_back(tile);
    }
    if (parameters.tiles.empty()) tiles.fail("", "is empty, expected at least one tile");
    if (parameters.tiles.size() > overlap_advice::most_gemm_tiles)
        tiles.fail("", "has more than " + std::to_string(overlap_advice::most_gemm_tiles) + " tiles");
    group.finish();
    return parameters;
}

}  // namespace

std::span<const GemmField> gemm_fields() {
    using P = GemmParameters;
    constexpr Range time_us{0.0, 1e6};
    constexpr Range rate_GBps{1e-3, 1e7};
    static const std::array<GemmField, 15> fields{{
        {"launch_us", time_us, [](const P& p) { return to_microseconds(p.launch); },
         [](P& p, double v) { p.launch = microseconds(v); }},
        {"tile_fixed_us", time_us, [](const P& p) { return to_microseconds(p.tile_fixed); },
         [](P& p, double v) { p.tile_fixed = microseconds(v); }},
        {"tile_epilogue_us", time_us, [](const P& p) { return to_microseconds(p.tile_epilogue); },
         [](P& p, double v) { p.tile_epilogue = microseconds(v); }},
        {"peak_TFLOPS",
         {1e-3, 1e7},
         [](const P& p) { return to_teraflops(p.peak_rate); },
         [](P& p, double v) { p.peak_rate = teraflops(v); }},
        {"stride_loss_per_kB", fraction, [](const P& p) { return p.stride_loss; },
         [](P& p, double v) { p.stride_loss = v; }},
        {"tail_floor", fraction, [](const P& p) { return p.tail_floor; },
         [](P& p, double v) { p.tail_floor = v; }},
        {"partial_floor", fraction, [](const P& p) { return p.partial_floor; },
         [](P& p, double v) { p.partial_floor = v; }},
        {"hbm_GBps", rate_GBps, [](const P& p) { return to_gigabytes_per_second(p.hbm); },
         [](P& p, double v) { p.hbm = gigabytes_per_second(v); }},
        {"unit_bandwidth_GBps", rate_GBps,
         [](const P& p) { return to_gigabytes_per_second(p.unit_bandwidth); },
         [](P& p, double v) { p.unit_bandwidth = gigabytes_per_second(v); }},
        {"overlap_exponent",
         {1.0, 100.0},
         [](const P& p) { return p.overlap_exponent; },
         [](P& p, double v) { p.overlap_exponent = v; }},
        {"reuse_cache_MB",
         {1e-3, 1e6},
         [](const P& p) { return p.reuse_cache.si() * 1e-6; },
         [](P& p, double v) { p.reuse_cache = megabytes(v); }},
        {"split_k_fixed_us", time_us, [](const P& p) { return to_microseconds(p.split_k_fixed); },
         [](P& p, double v) { p.split_k_fixed = microseconds(v); }},
        {"split_k_GBps", rate_GBps, [](const P& p) { return to_gigabytes_per_second(p.split_k_rate); },
         [](P& p, double v) { p.split_k_rate = gigabytes_per_second(v); }},
        {"sustained_slowdown",
         {0.0, 2.0},
         [](const P& p) { return p.sustained_slowdown; },
         [](P& p, double v) { p.sustained_slowdown = v; }},
        {"sustained_time_us",
         {1e-3, 1e9},
         [](const P& p) { return to_microseconds(p.sustained_time); },
         [](P& p, double v) { p.sustained_time = microseconds(v); }},
    }};
    return fields;
}

std::string tile_key(const GemmTile& tile) {
    return std::to_string(tile.m) + "x" + std::to_string(tile.n);
}

std::map<DType, GemmParameters> read_gemm_parameters(ConfigObject& gemm) {
    std::map<DType, GemmParameters> result;
    for (const std::string& key : gemm.keys()) {
        const auto named = std::find(dtype_names.begin(), dtype_names.end(), key);
        if (named == dtype_names.end()) gemm.fail(key, "is no data type" + suggestion(key, dtype_names));
        ConfigObject group = gemm.object(key);
        result.emplace(static_cast<DType>(named - dtype_names.begin()), read_one(group));
    }
    if (result.empty()) gemm.fail("", "is empty, expected at least one data type");
    gemm.finish();
    return result;
}

}  // namespace overlap
