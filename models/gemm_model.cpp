#include "models/gemm_model.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace overlap {

overlap_advice::GemmConstants to_constants(const GemmParameters& p) {
    assert(!p.tiles.empty() && p.tiles.size() <= overlap_advice::most_gemm_tiles);
    overlap_advice::GemmConstants constants{};
    constants.compute_units = p.compute_units;
    constants.k_step = static_cast<double>(p.k_step);
    constants.launch = p.launch.si();
    constants.tile_fixed = p.tile_fixed.si();
    constants.tile_epilogue = p.tile_epilogue.si();
    constants.peak_rate = p.peak_rate.si();
    constants.stride_loss = p.stride_loss;
    constants.tail_floor = p.tail_floor;
    constants.partial_floor = p.partial_floor;
    constants.hbm = p.hbm.si();
    constants.unit_bandwidth = p.unit_bandwidth.si();
    constants.overlap_exponent = p.overlap_exponent;
    constants.reuse_cache = p.reuse_cache.si();
    constants.split_k_fixed = p.split_k_fixed.si();
    constants.split_k_rate = p.split_k_rate.si();
    constants.sustained_slowdown = p.sustained_slowdown;
    constants.sustained_time = p.sustained_time.si();
    constants.quantise_rate = p.quantise_rate.si();
    constants.dies = p.dies;
    constants.engines = p.engines;
    constants.first_large_engine = p.first_large_engine;
    constants.lone_unit_speed = p.lone_unit_speed;
    constants.unit_speed_exponent = p.unit_speed_exponent;
    constants.mask_loss = p.mask_loss;
    constants.row_step = static_cast<double>(p.row_step);
    constants.memory_start = p.memory_start.si();
    for (const GemmTile& tile : p.tiles)
        constants.tiles[constants.tile_count++] = {static_cast<double>(tile.m), static_cast<double>(tile.n),
                                                   tile.efficiency};
    return constants;
}

namespace {

overlap_advice::GemmWork to_work(const GemmShape& shape, bool warm = false) {
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

}  // namespace

GemmEstimate estimate_gemm(const GemmShape& shape, const GemmParameters& parameters, Seconds busy, int units,
                           bool persistent, bool warm) {
    const overlap_advice::GemmCost cost = overlap_advice::gemm_cost(
        to_work(shape, warm), to_constants(parameters), busy.si(), units, persistent);
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
