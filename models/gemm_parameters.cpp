#include "models/gemm_parameters.hpp"

#include <algorithm>
#include <array>

#include "models/fitted_keys.hpp"
#include "sim/core/numbers.hpp"
#include "sim/core/shown.hpp"
#include "sim/topology/device.hpp"

namespace overlap {
namespace {

constexpr std::int64_t longest_tile_side = 4096;
constexpr Range tile_efficiency{0.001, 1.5};

void read_tiles(ConfigObject& from, const std::string& key, GemmParameters& to) {
    ConfigObject tiles = from.object(key);
    for (const std::string& name : tiles.keys()) {
        GemmTile tile = parse_tile(tiles, name, name);
        tile.efficiency = tiles.sourced(name, tile_efficiency);
        to.tiles.push_back(tile);
    }
    if (to.tiles.empty()) tiles.fail("", "is empty, expected at least one tile");
}

const std::vector<InputKey<GemmParameters>>& gemm_group_keys() {
    using P = GemmParameters;
    static const std::vector<InputKey<P>> keys = [] {
        Key efficiency;
        efficiency.range = tile_efficiency;
        std::vector<InputKey<P>> made = fitted_keys<P>();
        made.push_back(text_key<P>("library",
                                   "Whose kernels were timed, in words: every output with a price "
                                   "of these GEMMs says it.")  // read by library_of_gemms
                           .optional());
        made.emplace_back(
            "tiles",
            map_schema("Efficiency of each macro-tile, rows x columns of C.",
                       {{"pattern", "^[1-9][0-9]*x[1-9][0-9]*$"}},
                       sourced_schema(efficiency, "Main-loop rate with this tile, as a share of peak_TFLOPS.",
                                      "sourced"),
                       1),
            read_tiles);
        return made;
    }();
    return keys;
}

}  // namespace

std::span<const Field<GemmParameters>> GemmParameters::fields() {
    using P = GemmParameters;
    // clang-format off
    static const std::array rows{
        field<&P::launch>("launch_us", "Kernel start and end, independent of the shape."),
        field<&P::tile, &P::TileCost::fixed>("tile_fixed_us", "Prologue of a tile: first loads, pipeline fill."),
        field<&P::tile, &P::TileCost::epilogue>("tile_epilogue_us", "Storing a 128x128 tile of C; proportional to the tile's area."),
        field<&P::peak_rate>("peak_TFLOPS",
            "Rate of all units together for a short kernel with deep K: what clock and power allow.").in({1e-3, 1e7}),
        field<&P::stride_loss>("stride_loss_per_kB", "Extra main-loop time, as a share, for a kB of K where rows of A "
            "and B are multiples of 512 B apart. 0: none seen."),
        field<&P::tail_floor>("tail_floor", "Cost of a last wave that is almost empty, in full waves."),
        field<&P::partial_floor>("partial_floor",
            "Cost of an only wave that is almost empty, in full waves; the clock is higher."),
        field<&P::memory, &P::Memory::hbm>("hbm_GBps", "Achieved memory rate with all units reading."),
        field<&P::memory, &P::Memory::unit_bandwidth>("unit_bandwidth_GBps", "Most that one compute unit draws from memory."),
        field<&P::overlap_exponent>("overlap_exponent",
            "p in (compute^p + memory^p)^(1/p): 1 is no overlap, a large value perfect overlap.").in({1.0, 100.0}),
        field<&P::memory, &P::Memory::reuse_cache>("reuse_cache_MB",
            "Operand size at which a quarter of the re-reads miss the last-level cache.").in({1e-3, 1e6}),
        field<&P::split_k, &P::SplitK::fixed>("split_k_fixed_us", "Extra time of a split-K kernel: its reduction pass."),
        field<&P::split_k, &P::SplitK::rate>("split_k_GBps", "Rate of reducing the fp32 partial results."),
        field<&P::sustained, &P::Sustained::slowdown>("sustained_slowdown", "Extra time, as a share, of a kernel much longer than "
            "sustained_time_us: the power cap lowers the clock.").in({0.0, 2.0}),
        field<&P::sustained, &P::Sustained::time>("sustained_time_us",
            "Duration at which half of that slowdown is reached.").in({1e-3, 1e9}),
        field<&P::memory, &P::Memory::quantise_rate>("quantise_GBps", "Rate at which a step before the GEMM reads A in bf16 and writes it "
            "in the operand type. 0: no such step in the times.").in({0.0, 1e7}).optional(),
        field<&P::chip, &GemmChip::lone_unit_speed>("lone_unit_speed", "Speed of one unit that works alone, relative to one of all at "
            "work, which share power and caches; without it units keep their speed.").in({1.0, 10.0}).optional(),
        field<&P::chip, &GemmChip::unit_speed_exponent>("unit_speed_exponent", "How sharply that speed falls with the units at work.")
            .in({1.0, 20.0}).optional(),
        field<&P::chip, &GemmChip::mask_loss>("mask_loss", "Extra time, as a share, in what the units of a GEMM share, on fewer units "
            "and with operands far larger than the last-level cache, where a mask leaves engines unequal numbers.")
            .in({0.0, 2.0}).optional(),
        field<&P::chip, &GemmChip::reserved_loss>("reserved_loss", "The same where units are reserved evenly, and of a schedule's "
            "own kernel.")
            .in({0.0, 2.0}).optional(),
        field<&P::memory, &P::Memory::start>("memory_start_us", "Time until operands that lie in no cache stream at the full rate. "
            "With it, the power cap slows compute only, not memory.").optional()};
    // clang-format on
    return rows;
}

std::span<const Field<GemmParameters>> GemmParameters::fixed_fields() {
    using P = GemmParameters;
    // clang-format off
    static const std::array rows{
        field<&P::compute_units>("compute_units", "Compute units (CUs or SMs) that the kernels may use.")
            .whole()
            .in({1, 100'000}),
        field<&P::k_step>("k_step", "K is padded to a multiple of this: main-loop depth of the kernels.")
            .in({1, 4096}),
        field<&P::chip, &GemmChip::dies>("dies", "Compute dies to which hardware deals work-groups in turn.").whole().in({1, 64}).optional(),
        field<&P::chip, &GemmChip::engines>("engines", "Shader engines of all dies, to which hardware deals the tiles of a GEMM in "
            "proportion to the units that they have, in use or not.").whole().in({1, 64}).optional(),
        field<&P::chip, &GemmChip::first_large_engine>("first_large_engine", "Where the units of a die do not divide evenly among its "
            "engines: the first engine, from 0, of those that have one more.").whole().in({0, 63}).optional(),
        field<&P::row_step>("row_step", "Where M is no multiple of 64, tiles have any multiple of this as rows. "
            "Without it only the listed tiles exist.").in({1, 256}).optional(),
    };
    // clang-format on
    return rows;
}

GemmTile parse_tile(const ConfigObject& object, const std::string& key, const std::string& text) {
    GemmTile tile;
    const auto read = [&](const std::string& side, std::int64_t& out) {
        out = parsed<std::int64_t>(side).value_or(0);
        return out >= 1 && out <= longest_tile_side;
    };
    const std::vector<std::string> sides = split(text, 'x');
    if (sides.size() != 2 || !read(sides[0], tile.m) || !read(sides[1], tile.n))
        object.fail(key, (text == key ? "is" : "has " + in_quotes(text) + ", which is") +
                             std::string(" no tile, expected rows x columns such as 256x128"));
    return tile;
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
        result.emplace(static_cast<DType>(named - dtype_names.begin()),
                       read_all_keys<GemmParameters>(group, gemm_group_keys()));
    }
    if (result.empty()) gemm.fail("", "is empty, expected at least one data type");
    gemm.finish();
    return result;
}

Json gemm_parameters_schema() {
    return keys_schema("Parameters of the GEMM cost model for one number format.", gemm_group_keys());
}

}  // namespace overlap
