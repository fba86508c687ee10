#include "models/gemm_model.hpp"

#include <algorithm>
#include <cmath>

#include "models/gemm_engines.hpp"

namespace overlap {
namespace gemm_detail {
namespace {

/// The time of a problem on a tiling, by its parameters. `rounds`: on engines with fewer units; null: in waves over all
/// units.
GemmEstimate estimate_of(const GemmShape& shape, Problem problem, const GemmParameters& p, Tiling chosen,
                         double busy, const Rounds* rounds) {
    if (shape.accumulate) problem.c_passes = problem.epilogue_factor = 2;
    const double bytes = hbm_bytes(problem, p, chosen);
    const double quantise = quantise_time(problem, p);
    if (rounds != nullptr) chosen.waves_cost = rounds->time;
    const double compute = compute_time(problem, p, chosen),
                 memory = memory_time(problem, p, bytes, chosen.active),
                 reduction = reduction_time(problem, p, chosen);
    const double body = quantise + (smooth_max(compute, memory, p.overlap_exponent) + reduction);
    const double quantised = quantise > 0 ? unquantised_bytes(problem) + problem.a : 0;
    const double hot = std::max(body, busy);
    const double slowed = 1 + p.sustained.slowdown * hot / (hot + p.sustained.time.si());
    // The power cap lowers the clock of the units, not that of memory. Fits without `memory.start` slow both.
    const double whole = p.memory.start.si() > 0
                             ? quantise + smooth_max(compute * slowed, memory, p.overlap_exponent) + reduction
                             : body * slowed;
    const double full = std::floor(chosen.waves);
    const double tiles = problem.batch * chosen.rows * chosen.columns * chosen.split;
    // Before the last wave
    const double share = rounds != nullptr ? 1 - rounds->last_time / rounds->time : full / chosen.waves_cost;
    const double last_tiles =
        rounds != nullptr ? rounds->last_tiles : std::round((chosen.waves - full) * p.compute_units);
    const bool partial =
        rounds != nullptr ? share > 0 && last_tiles < chosen.active : full > 0 && chosen.waves > full;
    return {.launch = p.launch,
            .body = Seconds(whole),
            .hbm_traffic = Bytes(bytes + 2 * partial_results(problem, chosen) + quantised),
            .compute_units_busy =
                std::min(chosen.active, rounds != nullptr ? rounds->busy : tiles / chosen.waves_cost),
            .tile_m = static_cast<std::int64_t>(chosen.tile.rows),
            .tile_n = static_cast<std::int64_t>(chosen.tile.columns),
            .split_k = static_cast<std::int64_t>(chosen.split),
            .waves = chosen.waves,
            .last_wave = partial ? share + (1 - share) * (quantise / body) : 1,
            .last_tiles = partial ? last_tiles : 0};
}

/// Share of operands that the last-level cache does not hold.
double beyond_cache(const Problem& problem, const GemmParameters& p) {
    const double operands = problem.a + problem.b;
    return operands / (operands + p.memory.reuse_cache.si());
}

/// With some of the units of engines; `loss`: mask_loss or reserved_loss. A library does not know which: the tile is that of the whole chip.
GemmEstimate estimate_on_engines(const GemmShape& shape, const Problem& problem, const GemmParameters& p,
                                 double busy, const Engines& engines, double units, double loss) {
    Tiling chosen = choose(problem, p);
    const double tiles = problem.batch * chosen.rows * chosen.columns * chosen.split;
    const Rounds rounds = count_rounds(engines, tiles, p, loss * beyond_cache(problem, p));
    chosen.waves = tiles / units;
    chosen.active = std::min(tiles, units);
    return estimate_of(shape, problem, p, chosen, busy, &rounds);
}

bool knows_engines(const GemmParameters& p) {
    return p.chip.engines >= 1 && p.chip.dies >= 1 && p.chip.engines <= most_engines;
}

}  // namespace
}  // namespace gemm_detail

GemmEstimate estimate_gemm(const GemmShape& shape, const GemmParameters& parameters, Seconds busy,
                           const GemmRun& run) {
    using namespace gemm_detail;
    const auto [units, mask, persistent, warm] = run;
    // Chosen by shape alone: libraries look neither at beta nor at the CU mask of their stream.
    const Problem problem = describe(shape, parameters, warm);
    if (units <= 0 || units >= parameters.compute_units)
        return estimate_of(shape, problem, parameters,
                           choose(problem, parameters, persistent ? 1 : most_splits), busy.si(), nullptr);
    if (!persistent && knows_engines(parameters))
        return estimate_on_engines(
            shape, problem, parameters, busy.si(), engines_under_mask(parameters, units, mask), units,
            mask == CuMask::even ? parameters.chip.reserved_loss : parameters.chip.mask_loss);
    const GemmParameters fewer =
        on_units(parameters, units, parameters.chip.reserved_loss * beyond_cache(problem, parameters));
    Tiling chosen = persistent ? choose(problem, fewer, 1) : choose(problem, parameters);
    if (!persistent)
        chosen = tiling_of(problem, fewer, chosen.tile, chosen.rows, chosen.columns, chosen.split);
    return estimate_of(shape, problem, fewer, chosen, busy.si(), nullptr);
}

double slowed_by_lost_units(const GemmShape& shape, const GemmParameters& parameters, Seconds busy,
                            int lost) {
    using namespace gemm_detail;
    if (!knows_engines(parameters)) return 1;
    const Engines engines = engines_without(parameters, lost);
    return estimate_on_engines(shape, describe(shape, parameters), parameters, busy.si(), engines,
                               engines.units[0] * parameters.chip.engines, parameters.chip.mask_loss)
               .body /
           estimate_gemm(shape, parameters, busy).body;
}

}  // namespace overlap
