// Time and demands of one GEMM by a tile and wave model, in plain doubles. models/gemm_model.cpp wraps it in
// units; the static heuristic uses it directly. Needs only the standard library (C++11).
#ifndef OVERLAP_GEMM_HPP
#define OVERLAP_GEMM_HPP

#include "overlap_cover.hpp"

namespace overlap_advice {
namespace gemm_detail {

/// Units that a kernel may use of each shader engine.
struct Engines {
    std::size_t dies, on_die;
    std::array<double, most_engines> units, whole;  ///< `whole`: all units of the engine
};

/// The engines of a chip with none of their units in use. A die whose units don't divide evenly has large
/// engines, from `first_large_engine` on.
inline Engines engines_of(const GemmConstants& p) {
    Engines engines{};
    engines.dies = static_cast<std::size_t>(p.dies);
    engines.on_die = static_cast<std::size_t>(p.engines) / engines.dies;
    const auto of_die = static_cast<std::size_t>(p.compute_units) / engines.dies;
    for (std::size_t e = 0; e < engines.dies * engines.on_die; ++e) {
        const auto large =
            (e + engines.on_die - static_cast<std::size_t>(p.first_large_engine)) % engines.on_die;
        engines.whole[e] =
            static_cast<double>(of_die / engines.on_die + (large < of_die % engines.on_die ? 1 : 0));
    }
    return engines;
}

/// Those of a mask of `units`: the same number of low bits in each of as many blocks as there are dies. Bit i is unit
/// i div dies of die i mod dies. Units of a die are on its engines in turn; the last ones on the large engines.
inline Engines engines_under_mask(const GemmConstants& p, double units) {
    Engines engines = engines_of(p);
    const auto all = static_cast<std::size_t>(units),
               block = static_cast<std::size_t>(p.compute_units) / engines.dies,
               even = block / engines.on_die * engines.on_die;
    for (std::size_t b = 0; b < engines.dies; ++b)
        for (std::size_t bit = b * block; bit < b * block + (all + engines.dies - 1 - b) / engines.dies;
             ++bit) {
            const std::size_t unit = bit / engines.dies;
            const std::size_t engine =
                unit < even ? unit : unit - even + static_cast<std::size_t>(p.first_large_engine);
            engines.units[bit % engines.dies * engines.on_die + engine % engines.on_die] += 1;
        }
    return engines;
}

/// Every engine like the smallest one, less `lost` units.
inline Engines engines_without(const GemmConstants& p, double lost) {
    Engines engines = engines_of(p);
    const double smallest = std::floor(p.compute_units / p.engines);
    engines.whole.fill(smallest);
    engines.units.fill(std::max(smallest - lost, 1.0));
    return engines;
}

/// Tiles of each engine. Hardware deals work-groups to the dies in turn, and on a die to the engines in use, in
/// proportion to all their units: it looks neither at the mask nor at what other kernels hold.
inline std::array<double, most_engines> deal_tiles(const Engines& engines, double tiles) {
    std::array<double, most_engines> dealt{};
    const double dies = static_cast<double>(engines.dies);
    for (std::size_t die = 0; die < engines.dies; ++die) {
        const std::size_t first = die * engines.on_die, end = first + engines.on_die;
        const double of_die = std::floor((tiles + dies - 1 - static_cast<double>(die)) / dies);
        double whole = 0, left = of_die;
        for (std::size_t e = first; e < end; ++e) whole += engines.units[e] > 0 ? engines.whole[e] : 0;
        for (std::size_t e = first; e < end; ++e)
            if (engines.units[e] > 0) left -= dealt[e] = std::floor(of_die * engines.whole[e] / whole);
        for (; left >= 1; left -= 1) {  // to the engine that has least of its part
            std::size_t next = end;
            double most = -1;
            for (std::size_t e = first; e < end; ++e) {
                const double missing = of_die * engines.whole[e] / whole - dealt[e];
                if (engines.units[e] > 0 && missing > most) most = missing, next = e;
            }
            if (next == end) break;
            dealt[next] += 1;
        }
    }
    return dealt;
}

/// Rounds of tiles, one on each unit at a time; all tiles take equally long.
struct Rounds {
    double time;                   ///< of all, in tiles of the chip with all units at work
    double busy;                   ///< mean number of units that hold a tile
    double last_time, last_tiles;  ///< of the last round
};

inline Rounds count_rounds(const Engines& engines, double tiles, const GemmConstants& p, double loss) {
    const std::array<double, most_engines> dealt = deal_tiles(engines, tiles);
    const std::size_t count = engines.dies * engines.on_die;
    Rounds rounds{};
    double tile_times = 0;
    for (double begun = 0;;) {
        // Units at work stay the same until an engine's full rounds are over.
        double working = 0, next = 1e300;
        for (std::size_t e = 0; e < count; ++e) {
            if (engines.units[e] == 0) continue;
            const double left = dealt[e] - begun * engines.units[e];
            if (left <= 0) continue;
            working += std::min(left, engines.units[e]);
            next = std::min(next, std::max(std::floor(left / engines.units[e]), 1.0));
        }
        if (working == 0) break;
        const double shared = tile_time(working / p.compute_units, p, loss),
                     time = shared > 0 ? shared : 1 + loss;
        rounds.time += next * time;
        tile_times += next * time * working;
        rounds.last_time = time;
        rounds.last_tiles = working;
        begun += next;
    }
    rounds.busy = rounds.time > 0 ? tile_times / rounds.time : 0;
    return rounds;
}

/// The time of a problem on a cover, by its parameters, with what else GemmCost says. `rounds`: on engines with fewer
/// units; null: in waves over all units.
inline GemmCost cost_of(const GemmWork& work, Problem problem, const GemmConstants& p, Cover chosen,
                        double busy, const Rounds* rounds) {
    if (work.accumulate) problem.c_passes = problem.epilogue_factor = 2;
    const double bytes = hbm_bytes(problem, p, chosen);
    const double quantise = quantise_time(work, p);
    if (rounds != nullptr) chosen.waves_cost = rounds->time;
    const double compute = compute_time(problem, p, chosen),
                 memory = memory_time(problem, p, bytes, chosen.active),
                 reduction = reduction_time(problem, p, chosen);
    const double body = quantise + (smooth_max(compute, memory, p.overlap_exponent) + reduction);
    const double quantised = quantise > 0 ? unquantised_bytes(work) + problem.a : 0;
    const double hot = std::max(body, busy);
    const double slowed = 1 + p.sustained_slowdown * hot / (hot + p.sustained_time);
    // The power cap lowers the clock of the units, not that of memory. Fits without `memory_start` slow both.
    const double whole = p.memory_start > 0
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
    return {p.launch,
            whole,
            bytes + 2 * partial_results(problem, chosen) + quantised,
            std::min(chosen.active, rounds != nullptr ? rounds->busy : tiles / chosen.waves_cost),
            chosen.tile.rows,
            chosen.tile.columns,
            chosen.split,
            chosen.waves,
            partial ? share + (1 - share) * (quantise / body) : 1,
            partial ? last_tiles : 0};
}

/// With all units, or some of the units of engines. A library does not know which: the tile is that of the whole chip.
inline GemmCost cost_on_engines(const GemmWork& work, const GemmConstants& p, double busy,
                                const Engines& engines, double units) {
    const Problem problem = describe(work, p);
    Cover chosen = choose(problem, p);
    const double tiles = problem.batch * chosen.rows * chosen.columns * chosen.split,
                 operands = problem.a + problem.b;
    const double loss = p.mask_loss * operands / (operands + p.reuse_cache);
    const Rounds rounds = count_rounds(engines, tiles, p, loss);
    chosen.waves = tiles / units;
    chosen.active = std::min(tiles, units);
    return cost_of(work, problem, p, chosen, busy, &rounds);
}

}  // namespace gemm_detail

/// Whether the shader engines of the chip are known.
inline bool knows_engines(const GemmConstants& p) {
    return p.engines >= 1 && p.dies >= 1 && p.engines <= gemm_detail::most_engines;
}

/// Formulas, accuracy and limits: models/gemm_model.hpp. `busy`: s that the GPU multiplies without a pause
/// around this GEMM. `units`: compute units that it may use, 0 for all; with a mask the library's tile is that of the whole
/// chip. A `persistent` kernel has one work-group a unit, which take tiles in turn, and a tile chosen for that number. It
/// does not split K, because it sets and polls flags by finished tiles.
inline GemmCost gemm_cost(const GemmWork& work, const GemmConstants& constants, double busy = 0,
                          double units = 0, bool persistent = false) {
    namespace detail = gemm_detail;
    // Chosen by shape alone: libraries look neither at beta nor at the CU mask of their stream.
    const bool some = units > 0 && units < constants.compute_units;
    if (some && !persistent && knows_engines(constants))
        return detail::cost_on_engines(work, constants, busy, detail::engines_under_mask(constants, units),
                                       units);
    const detail::Problem problem = detail::describe(work, constants);
    const GemmConstants p = some ? detail::on_units(constants, units) : constants;
    detail::Cover chosen = persistent ? detail::choose(problem, p, 1) : detail::choose(problem, constants);
    if (some && !persistent)
        chosen = detail::cover(problem, p, chosen.tile, chosen.rows, chosen.columns, chosen.split);
    return detail::cost_of(work, problem, p, chosen, busy, nullptr);
}

/// On a chip whose shader engines are known, while each lacks `lost` of its units.
inline GemmCost gemm_cost_without(const GemmWork& work, const GemmConstants& constants, double busy,
                                  double lost) {
    const gemm_detail::Engines engines = gemm_detail::engines_without(constants, lost);
    return gemm_detail::cost_on_engines(work, constants, busy, engines, engines.units[0] * constants.engines);
}

}  // namespace overlap_advice

#endif
