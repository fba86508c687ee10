#include "models/gemm_model.hpp"

#include <array>
#include <cassert>

namespace overlap {
namespace {

template <auto Member>
constexpr double si_of(const GemmParameters& parameters) {
    return detail::plain(parameters.*Member);
}

}  // namespace

std::span<const GemmConstant> gemm_constants() {
    using C = overlap_advice::GemmConstants;
    using P = GemmParameters;
    static constexpr std::array rows{
        GemmConstant{"compute_units", &C::compute_units, si_of<&P::compute_units>},
        GemmConstant{"k_step", &C::k_step, si_of<&P::k_step>},
        GemmConstant{"launch", &C::launch, si_of<&P::launch>},
        GemmConstant{"tile_fixed", &C::tile_fixed, si_of<&P::tile_fixed>},
        GemmConstant{"tile_epilogue", &C::tile_epilogue, si_of<&P::tile_epilogue>},
        GemmConstant{"peak_rate", &C::peak_rate, si_of<&P::peak_rate>},
        GemmConstant{"stride_loss", &C::stride_loss, si_of<&P::stride_loss>},
        GemmConstant{"tail_floor", &C::tail_floor, si_of<&P::tail_floor>},
        GemmConstant{"partial_floor", &C::partial_floor, si_of<&P::partial_floor>},
        GemmConstant{"hbm", &C::hbm, si_of<&P::hbm>},
        GemmConstant{"unit_bandwidth", &C::unit_bandwidth, si_of<&P::unit_bandwidth>},
        GemmConstant{"overlap_exponent", &C::overlap_exponent, si_of<&P::overlap_exponent>},
        GemmConstant{"reuse_cache", &C::reuse_cache, si_of<&P::reuse_cache>},
        GemmConstant{"split_k_fixed", &C::split_k_fixed, si_of<&P::split_k_fixed>},
        GemmConstant{"split_k_rate", &C::split_k_rate, si_of<&P::split_k_rate>},
        GemmConstant{"sustained_slowdown", &C::sustained_slowdown, si_of<&P::sustained_slowdown>},
        GemmConstant{"sustained_time", &C::sustained_time, si_of<&P::sustained_time>},
        GemmConstant{"quantise_rate", &C::quantise_rate, si_of<&P::quantise_rate>},
        GemmConstant{"dies", &C::dies, si_of<&P::dies>},
        GemmConstant{"engines", &C::engines, si_of<&P::engines>},
        GemmConstant{"first_large_engine", &C::first_large_engine, si_of<&P::first_large_engine>},
        GemmConstant{"lone_unit_speed", &C::lone_unit_speed, si_of<&P::lone_unit_speed>},
        GemmConstant{"unit_speed_exponent", &C::unit_speed_exponent, si_of<&P::unit_speed_exponent>},
        GemmConstant{"mask_loss", &C::mask_loss, si_of<&P::mask_loss>},
        GemmConstant{"row_step", &C::row_step, si_of<&P::row_step>},
        GemmConstant{"memory_start", &C::memory_start, si_of<&P::memory_start>}};
    return rows;
}

overlap_advice::GemmConstants to_constants(const GemmParameters& p) {
    assert(!p.tiles.empty() && p.tiles.size() <= overlap_advice::most_gemm_tiles);
    overlap_advice::GemmConstants constants{};
    for (const GemmConstant& one : gemm_constants()) constants.*one.member = one.si(p);
    for (const GemmTile& tile : p.tiles)
        constants.tiles[constants.tile_count++] = {static_cast<double>(tile.m), static_cast<double>(tile.n),
                                                   tile.efficiency};
    return constants;
}

overlap_advice::GemmWork to_work(const GemmShape& shape, bool warm) {
    assert(shape.m >= 1 && shape.n >= 1 && shape.k >= 1);
    return {static_cast<double>(shape.m),
            static_cast<double>(shape.n),
            static_cast<double>(shape.k),
            static_cast<double>(shape.batch),
            element_size(shape.dtype).si(),
            element_size(output_type(shape.dtype)).si(),
            shape.accumulate,
            warm};
}

GemmEstimate estimate_gemm(const GemmShape& shape, const GemmParameters& parameters, Seconds busy, int units,
                           bool persistent, bool warm) {
    return estimate_gemm(shape, to_constants(parameters), busy, units, persistent, warm);
}

GemmEstimate estimate_gemm(const GemmShape& shape, const overlap_advice::GemmConstants& constants,
                           Seconds busy, int units, bool persistent, bool warm) {
    const overlap_advice::GemmCost cost =
        overlap_advice::gemm_cost(to_work(shape, warm), constants, busy.si(), units, persistent);
    return {.launch = Seconds(cost.launch),
            .body = Seconds(cost.body),
            .hbm_traffic = Bytes(cost.traffic),
            .compute_units_busy = cost.units_busy,
            .tile_m = static_cast<std::int64_t>(cost.tile_rows),
            .tile_n = static_cast<std::int64_t>(cost.tile_columns),
            .split_k = static_cast<std::int64_t>(cost.split),
            .waves = cost.waves,
            .last_wave = cost.last_wave,
            .last_tiles = cost.last_tiles};
}

double slowed_by_lost_units(const GemmShape& shape, const GemmParameters& parameters, Seconds busy,
                            int lost) {
    const overlap_advice::GemmConstants constants = to_constants(parameters);
    if (!overlap_advice::knows_engines(constants)) return 1;
    const overlap_advice::GemmWork work = to_work(shape);
    return overlap_advice::gemm_cost_without(work, constants, busy.si(), lost).body /
           overlap_advice::gemm_cost(work, constants, busy.si()).body;
}

}  // namespace overlap
