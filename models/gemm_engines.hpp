#pragma once

#include "models/gemm_tiling.hpp"

/// Shader engines of a chip, to which hardware deals the tiles of a GEMM.
namespace overlap::gemm_detail {

/// Units that a kernel may use of each shader engine.
struct Engines {
    std::size_t dies, on_die;
    std::array<double, most_engines> units, whole;  ///< `whole`: all units of the engine
};

/// The engines of a chip with none of their units in use. A die whose units don't divide evenly has large
/// engines, from `first_large_engine` on.
inline Engines engines_of(const GemmParameters& p) {
    Engines engines{};
    engines.dies = static_cast<std::size_t>(p.chip.dies);
    engines.on_die = static_cast<std::size_t>(p.chip.engines) / engines.dies;
    const auto of_die = static_cast<std::size_t>(p.compute_units) / engines.dies;
    for (std::size_t e = 0; e < engines.dies * engines.on_die; ++e) {
        const auto large =
            (e + engines.on_die - static_cast<std::size_t>(p.chip.first_large_engine)) % engines.on_die;
        engines.whole[e] =
            static_cast<double>(of_die / engines.on_die + (large < of_die % engines.on_die ? 1 : 0));
    }
    return engines;
}

/// Those of a mask of `units`. Bit i is unit i div dies of die i mod dies; units of a die are on its engines in turn, the
/// last ones on the large engines. So an even mask has the first bits, another one the first of each of as many
/// blocks as there are dies.
inline Engines engines_under_mask(const GemmParameters& p, double units, CuMask mask) {
    Engines engines = engines_of(p);
    const auto all = static_cast<std::size_t>(units),
               of_die = static_cast<std::size_t>(p.compute_units) / engines.dies,
               blocks = mask == CuMask::even ? 1 : engines.dies, block = of_die * engines.dies / blocks,
               even = of_die / engines.on_die * engines.on_die;
    for (std::size_t b = 0; b < blocks; ++b)
        for (std::size_t bit = b * block; bit < b * block + (all + blocks - 1 - b) / blocks; ++bit) {
            const std::size_t unit = bit / engines.dies;
            const std::size_t engine =
                unit < even ? unit : unit - even + static_cast<std::size_t>(p.chip.first_large_engine);
            engines.units[bit % engines.dies * engines.on_die + engine % engines.on_die] += 1;
        }
    return engines;
}

/// Every engine like the smallest one, less `lost` units.
inline Engines engines_without(const GemmParameters& p, double lost) {
    Engines engines = engines_of(p);
    const double smallest = std::floor(p.compute_units / p.chip.engines);
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

inline Rounds count_rounds(const Engines& engines, double tiles, const GemmParameters& p, double loss) {
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

}  // namespace overlap::gemm_detail
