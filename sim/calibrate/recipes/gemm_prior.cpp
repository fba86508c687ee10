#include "sim/calibrate/recipes/gemm_prior.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/core/what_if.hpp"

namespace overlap {
namespace {

/// Libraries reach this share of the data sheet's rate: the fits of H100 and H200 (792 and 790 of 989 TFLOPS);
/// elsewhere an estimate with a spread of 1.3.
constexpr double usual_share_of_peak = 0.8;

/// Units that saturate HBM (AMD's Origami model).
constexpr double units_that_saturate_hbm = 60;

/// Efficiency of a tile relative to one of 256x128.
double tile_efficiency_of(std::int64_t m, std::int64_t n) {
    return std::min(1.0, std::pow(static_cast<double>(m * n) / (256.0 * 128.0), 0.15));
}

}  // namespace

const std::vector<InputKey<GemmHardware>>& GemmHardware::keys() {
    using H = GemmHardware;
    // clang-format off
    static const std::vector<InputKey<H>> rows{
        text_key<H>("source", "Where these values are from."),
        name_key<H>("tiles", &H::tiles, "A list of macro-tiles in tiles.json."),
        field<&H::units>("compute_units", "Compute units of the GPUs that the rows are from.")
            .whole().plain_in({1, 100'000}),
        field<&H::peak>("peak_TFLOPS", "Rate of a large GEMM.").plain_in({0.01, 1e6}),
        field<&H::peak_spread>("peak_spread", "Factor by which that rate may be wrong, two times in three.")
            .plain_in({1.001, 10}).optional(),
        field<&H::hbm>("hbm_GBps", "Rate of HBM that kernels achieve.").plain_in({1e-3, 1e7}),
        field<&H::cache>("cache_MB", "Last-level cache.").plain_in({0.1, 1e5}),
        field<&H::k_step>("k_step", "Main-loop depth of the kernels.").plain_in({1, 4096}).optional(),
        field<&H::stride_loss>("stride_loss_per_kB", "Prior of that GEMM parameter; 0 where the rows show no such loss.")
            .plain_in(fraction).optional(),
        field<&H::launch>("launch_us", "Prior of that GEMM parameter.").plain_in({0.1, 1000}).optional(),
        field<&H::tile_epilogue>("tile_epilogue_us", "The same.").plain_in({0.01, 100}).optional(),
        field<&H::split_k_fixed>("split_k_fixed_us", "Prior of that GEMM parameter; large where a library never splits K.")
            .plain_in({0.1, 1000}).optional(),
        field<&H::quantise_rate>("quantise_GBps", "Prior of that GEMM parameter; 0 where times have no quantise step.")
            .plain_in({0, 1e7}).optional(),
        field<&H::chip, &GemmChip::dies>("dies", "Compute dies.").whole().plain_in({1, 64}).optional(),
        field<&H::chip, &GemmChip::engines>("engines", "Shader engines, of all dies. With them, the speed of units in a partial wave "
            "is fitted instead of floors.").whole().plain_in({1, 64}).optional(),
        field<&H::chip, &GemmChip::first_large_engine>("first_large_engine", "That GEMM parameter.").whole().plain_in({0, 63}).optional(),
        field<&H::chip, &GemmChip::lone_unit_speed>("lone_unit_speed", "Prior of that GEMM parameter.").plain_in({1, 10}).optional(),
        field<&H::chip, &GemmChip::unit_speed_exponent>("unit_speed_exponent", "The same.").plain_in({1, 20}).optional(),
        field<&H::chip, &GemmChip::mask_loss>("mask_loss", "The same.").plain_in({0, 2}).optional(),
        field<&H::chip, &GemmChip::reserved_loss>("reserved_loss", "The same.").plain_in({0, 2}).optional(),
        field<&H::memory_start>("memory_start_us", "The same.").plain_in({0, 100}).optional(),
        field<&H::rows_of_family>("rows_of_family", "Least number of rows of an (N,K) family that are fitted: more where few "
            "M would not show the heights of the tiles.").plain_in({4, 1000}).optional()};
    // clang-format on
    return rows;
}

TileLists::TileLists(const std::filesystem::path& path) {
    const ConfigFile file = read_config_file(path, "tiles");
    ConfigObject root = file.view();
    *this = read_keys<TileLists>(root, keys());
    const ConfigObject platforms = root.object("of_platform");
    for (const auto& [platform, list] : of_platform_) at(list, platforms, platform);
}

// clang-format off
std::span<const InputKey<TileLists>> TileLists::keys() {
    using T = TileLists;
    static const std::vector<InputKey<TileList>> list_keys{
        {"tiles", list_schema("Rows x columns of C.", {{"type", "string"}, {"pattern", "^[1-9][0-9]*x[1-9][0-9]*$"}}),
            [](ConfigObject& from, const std::string& key, TileList& to) {
                for (const std::string& text : from.texts(key)) {
                    GemmTile& tile = to.tiles.emplace_back(parse_tile(from, key, text));
                    tile.efficiency = tile_efficiency_of(tile.m, tile.n);
                }
                if (to.tiles.empty()) from.fail(key, "is empty, expected at least one tile");
            }},
        field<&TileList::row_step>("row_step", "Where M is no multiple of 64, the library also has tiles of any multiple of this as rows.").plain_in({1, 256}).or_else("it has none"),
        text_key<TileList>("source", "How these tiles are known.")};
    static const std::vector<InputKey<std::map<std::string, std::string>>> platform_keys = mapped(std::array<std::string, 2>{"AMD", "NVIDIA"}, [](const std::string& platform) {
        return InputKey<std::map<std::string, std::string>>(platform, text_schema("A name of 'lists'.", 1),
            [](ConfigObject& from, const std::string& key, auto& to) { to[key] = from.text(key); });
    });
    static const std::vector<InputKey<T>> keys{
        version_key<T>("tiles"), text_key<T>("description", "What this is."),
        {"lists", map_schema("Macro-tiles by the names that recipes use.", {{"pattern", "^[a-z0-9][a-z0-9_]*$"}}, keys_schema("A library's.", list_keys), 1),
            [](ConfigObject& from, const std::string& key, T& to) {
                ConfigObject lists = from.object(key);
                for (const std::string& name : lists.keys()) {
                    ConfigObject list = lists.object(name);
                    to.lists_[name] = read_keys<TileList>(list, list_keys);
                }
            }},
        {"of_platform", keys_schema("The list of the library that frameworks call on GPUs of each vendor.", platform_keys),
            [](ConfigObject& from, const std::string& key, T& to) {
                ConfigObject platforms = from.object(key);
                to.of_platform_ = read_keys<std::map<std::string, std::string>>(platforms, platform_keys);
            }}};
    return keys;
}
// clang-format on

Json tiles_schema() {
    return file_of_keys("Tiles", "Macro-tiles of kernel libraries, by the names that recipes use.",
                        TileLists::keys());
}

const TileList& TileLists::at(const std::string& name, const ConfigObject& recipe,
                              const std::string& place) const {
    const auto found = lists_.find(name);
    if (found != lists_.end()) return found->second;
    std::vector<std::string> known;
    for (const auto& [one, list] : lists_) known.push_back(one);
    recipe.fail(place, "is no list of tiles.json" + suggestion(name, known));
}

const TileList& TileLists::of_platform(const std::string& platform) const {
    return lists_.at(of_platform_.at(platform));
}

GemmPrior gemm_prior(const GemmHardware& hardware) {
    struct Belief {
        double value, spread;
    };
    // The clock of an H200 falls by 12 to 18 % after 40 to 100 ms of GEMMs without a pause (`sustained` in
    // traces/h200_4/microbench/local.jsonl).
    const Belief slowdown{hardware.slow_sustained_clock ? 0.17 : 0.1, 2};
    const Belief after_us{hardware.slow_sustained_clock ? 150'000.0 : 4000.0, 2};
    const bool by_units = hardware.chip.lone_unit_speed > 0;
    const double hbm = to_gigabytes_per_second(hardware.hbm);
    const std::vector<Belief> beliefs{
        {to_microseconds(hardware.launch), 1.5},               // launch_us
        {0.5, 2},                                              // tile_fixed_us
        {to_microseconds(hardware.tile_epilogue), 2},          // tile_epilogue_us
        {to_teraflops(hardware.peak), hardware.peak_spread},   // peak_TFLOPS
        {hardware.stride_loss, 2},                             // stride_loss_per_kB
        {by_units ? 0 : 0.6, 1.5},                             // tail_floor
        {by_units ? 0 : 0.8, 1.3},                             // partial_floor
        {hbm, 1.08},                                           // hbm_GBps
        {hbm / units_that_saturate_hbm, 2},                    // unit_bandwidth_GBps
        {3, 1.5},                                              // overlap_exponent
        {hardware.cache.si() * 1e-6, 2},                       // reuse_cache_MB
        {to_microseconds(hardware.split_k_fixed), 2},          // split_k_fixed_us
        {3000, 2},                                             // split_k_GBps
        slowdown,                                              // sustained_slowdown
        after_us,                                              // sustained_time_us
        {to_gigabytes_per_second(hardware.quantise_rate), 2},  // quantise_GBps
        {hardware.chip.lone_unit_speed, 1.1},                  // lone_unit_speed
        {hardware.chip.unit_speed_exponent, 1.3},              // unit_speed_exponent
        {hardware.chip.mask_loss, 1.5},                        // mask_loss
        {hardware.chip.reserved_loss, 1.5},                    // reserved_loss
        {to_microseconds(hardware.memory_start), 2},           // memory_start_us
    };
    GemmPrior prior;
    prior.rows_of_family = hardware.rows_of_family;
    prior.start.compute_units = hardware.units;
    prior.start.k_step = hardware.k_step;
    prior.start.tiles = hardware.tile_list.tiles;
    prior.start.row_step = hardware.tile_list.row_step;
    prior.start.chip = hardware.chip;
    if (by_units) {
        // Known tiles, all large (ROCm/tritonBLAS docs/overlap-analysis.md) follow from the waves only with like efficiencies.
        for (GemmTile& tile : prior.start.tiles)
            tile.efficiency =
                std::min(1.0, std::pow(static_cast<double>(tile.m * tile.n) / (256.0 * 224.0), 0.15));
        prior.tile_spread = 1.08;
        prior.small_tile_spread = 1.3;
    }
    const auto fields = GemmParameters::fields();
    for (std::size_t i = 0; i < fields.size(); ++i) {
        fields[i].set(prior.start, beliefs.at(i).value);
        prior.field_spread.push_back(beliefs.at(i).spread);
    }
    return prior;
}

GemmHardware gemm_hardware_of(const DeviceSpec& device, const std::string& platform, const TileLists& tiles) {
    const auto bf16 = device.peak.find(DType::bf16);
    GemmHardware hardware;
    hardware.units = device.compute_units;
    if (bf16 != device.peak.end()) hardware.peak = bf16->second * usual_share_of_peak;
    hardware.hbm = device.hbm;
    hardware.cache = device.last_level_cache;
    hardware.slow_sustained_clock = true;
    hardware.tile_list = tiles.of_platform(platform);
    return hardware;
}

}  // namespace overlap
