// Time and demands of one GEMM by a tile and wave model, in plain doubles. models/gemm_model.cpp wraps it in
// units; the static heuristic uses it directly. Needs only the standard library (C++11).
#ifndef OVERLAP_GEMM_HPP
#define OVERLAP_GEMM_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace overlap_advice {

struct GemmTile {
    double rows, columns;
    double efficiency;  ///< main-loop rate as a fraction of `peak_rate`
};

constexpr std::size_t most_gemm_tiles = 32;

/// Parameters of a device's GEMM library for one type, in SI units: the `gemm` group of a calibration
/// (meanings: models/gemm_parameters.hpp).
struct GemmConstants {
    double compute_units, k_step, launch, tile_fixed, tile_epilogue, peak_rate, stride_loss, tail_floor,
        partial_floor, hbm, unit_bandwidth, overlap_exponent, reuse_cache, split_k_fixed, split_k_rate,
        sustained_slowdown, sustained_time,
        quantise_rate;  ///< 0: the time has no quantise step
    /// 0 where not known: compute dies of the chip, shader engines of all, and what fewer units gain and lose
    double dies, engines;
    double first_large_engine;  ///< of a die: first engine that has a unit more than the others
    double lone_unit_speed, unit_speed_exponent, mask_loss;
    double row_step;  ///< tiles have any multiple of it as rows; 0: only `tiles`
    std::array<GemmTile, most_gemm_tiles> tiles;
    std::size_t tile_count;
};

/// C[m,n] (+)= A[m,k]·B[k,n], `batch` of them in one kernel. Sizes of elements in bytes.
struct GemmWork {
    double m, n, k, batch;
    double operand_size, output_size;
    bool accumulate;  ///< C is read as well
};

/// Meanings: models/gemm_model.hpp; SI units.
struct GemmCost {
    double launch, body, traffic, units_busy;
    double tile_rows, tile_columns, split, waves, last_wave, last_tiles;
};

namespace gemm_detail {

constexpr double shortest_split = 256;             // least K of a split; less is never faster in the tables
constexpr double reference_tile_area = 128 * 128;  // elements of C that `tile_epilogue` is given for
constexpr double conflicting_row = 512;            // bytes; see stride_slowdown
// bytes; no table has longer rows, so the loss grows no further
constexpr double longest_strided_row = 16384;
constexpr double partial_result_bytes = 4;  // split-K partials are fp32
constexpr std::size_t most_engines = 64;
constexpr double usual_rows = 64;  // rows; see consider_other_rows

/// The problem's sizes, which do not depend on the tile.
struct Problem {
    double batch, m, n, k;
    double operand_element;            // bytes
    double a, b, c;                    // bytes of the matrices, of the whole batch
    double c_passes, epilogue_factor;  // 1, or 2 when C is read as well
};

inline Problem describe(const GemmWork& work) {
    return {work.batch,
            work.m,
            work.n,
            work.k,
            work.operand_size,
            work.batch * (work.m * work.k * work.operand_size),
            work.batch * (work.k * work.n * work.operand_size),
            work.batch * (work.m * work.n * work.output_size),
            1,
            1};
}

/// Time of a tile while `share` of the units work, relative to all at work: the units share power and caches. A
/// unit alone is `lone_unit_speed` times as fast as one of all; 0 without this parameter. `loss`: extra time, as a
/// share, in what the units share.
inline double tile_time(double share, const GemmConstants& p, double loss = 0) {
    if (p.lone_unit_speed <= 1) return 0;
    const double shared = std::pow(p.lone_unit_speed, p.unit_speed_exponent) - 1;
    return std::pow((1 + shared * std::pow((1 + loss) * share, p.unit_speed_exponent)) / (1 + shared),
                    1 / p.unit_speed_exponent);
}

/// Cost of `waves` in full waves. A partial wave is cheaper: with few units busy the clock
/// rises and memory is free.
inline double effective_waves(double waves, const GemmConstants& p) {
    const double full = std::floor(waves);
    const double filled = waves - full;
    const double floor = full > 0 ? p.tail_floor : p.partial_floor;
    return filled > 0 ? full + std::max(floor + (1 - floor) * filled, tile_time(filled, p)) : full;
}

/// A chip with only `units` of its units. Without `lone_unit_speed` each keeps its rate.
inline GemmConstants on_units(const GemmConstants& constants, double units) {
    GemmConstants p = constants;
    const double share = units / p.compute_units, time = tile_time(share, p);
    p.peak_rate = p.peak_rate * share;
    if (time > 0) p.peak_rate = p.peak_rate / time, p.lone_unit_speed = p.lone_unit_speed * time;
    p.compute_units = units;
    return p;
}

/// One choice of tile and split-K for the problem.
struct Cover {
    GemmTile tile;
    double rows, columns;  // of tiles, of one GEMM of the batch
    double split;
    double depth;  // K of one split, padded
    double waves, waves_cost;
    double active;  // compute units
};

inline Cover cover(const Problem& problem, const GemmConstants& p, const GemmTile& tile, double rows,
                   double columns, double split) {
    const double tiles = problem.batch * rows * columns * split, waves = tiles / p.compute_units;
    return {tile,
            rows,
            columns,
            split,
            std::ceil(problem.k / split / p.k_step) * p.k_step,
            waves,
            effective_waves(waves, p),
            std::min(tiles, p.compute_units)};
}

/// Bytes to and from HBM. A wave covers a block of tiles that is as square as possible in elements of C, and
/// reads that block's rows of A and columns of B. A library sweeps along the larger matrix, so the re-read
/// working set is the smaller matrix and one wave. The fraction of re-reads that misses the last-level cache
/// grows smoothly with this working set.
inline double hbm_bytes(const Problem& problem, const GemmConstants& p, const Cover& cover) {
    const double tm = cover.tile.rows, tn = cover.tile.columns;
    const double one = cover.rows * cover.columns;  // tiles of one GEMM of the batch
    const double together = std::max(1.0, cover.active / cover.split / one);
    const double wave_tiles = cover.active / cover.split / together;
    double wave_rows = std::min(std::max(std::sqrt(wave_tiles * tn / tm), 1.0), cover.rows);
    const double wave_columns = std::min(std::max(wave_tiles / wave_rows, 1.0), cover.columns);
    wave_rows = std::min(std::max(wave_tiles / wave_columns, 1.0), cover.rows);
    const double wave = together * (wave_rows * tm + wave_columns * tn) * problem.k * problem.operand_element;
    const double reread = std::max(0.0, wave * std::max(1.0, cover.waves) - problem.a - problem.b);
    const double working_set = std::min(problem.a, problem.b) / problem.batch + wave;
    const double overflow = working_set / (working_set + p.reuse_cache);
    return problem.a + problem.b + problem.c * problem.c_passes + reread * overflow * overflow;
}

/// Memory rate with `active` units reading: linear at first, then that of
/// HBM; the corner is rounded (4-norm).
inline double memory_rate(const GemmConstants& p, double active) {
    const double ratio = p.hbm / (active * p.unit_bandwidth);
    const double fourth = ratio * ratio * ratio * ratio;
    return p.hbm / std::sqrt(std::sqrt(1 + fourth));
}

/// (a^p + b^p)^(1/p)
inline double smooth_max(double a, double b, double exponent) {
    const double high = std::max(a, b), low = std::min(a, b);
    return high * std::pow(1 + std::pow(low / high, exponent), 1 / exponent);
}

/// If the row length of A and B is a multiple of 512 B, the rows lie on few memory channels. Tiles that
/// run side by side then drift apart and lose each other's cache lines, more so with larger K. MI300X
/// fp8 (public table, N = 5120, M >= 8192): 830 to 905 TFLOPS at K = 2176, 4352, 6400, but 840, 800,
/// 750 at 4096, 5120, 12800.
inline double stride_slowdown(const Problem& problem, const GemmConstants& p, double depth) {
    if (std::fmod(problem.k * problem.operand_element, conflicting_row) != 0) return 1;
    return 1 + p.stride_loss * std::min(depth * problem.operand_element, longest_strided_row) / 1e3;
}

inline double compute_time(const Problem& problem, const GemmConstants& p, const Cover& cover) {
    const double area = cover.tile.rows * cover.tile.columns;
    const double unit_rate = p.peak_rate / p.compute_units * cover.tile.efficiency;
    const double overhead =
        p.tile_fixed + p.tile_epilogue * problem.epilogue_factor * area / reference_tile_area;
    const double main_loop = 2 * area * cover.depth / unit_rate * stride_slowdown(problem, p, cover.depth);
    return (main_loop + overhead) * cover.waves_cost;
}

inline double partial_results(const Problem& problem, const Cover& cover) {
    return cover.split > 1 ? problem.batch * problem.m * problem.n * partial_result_bytes * cover.split : 0;
}

inline double reduction_time(const Problem& problem, const GemmConstants& p, const Cover& cover) {
    return cover.split > 1 ? p.split_k_fixed + partial_results(problem, cover) / p.split_k_rate : 0;
}

/// Bytes of A as the kernel before writes it (bf16), which a quantise step reads.
inline double unquantised_bytes(const GemmWork& work) {
    return work.batch * work.m * work.k * 2;
}

/// The step that turns A from bf16 into the operand type, before the first tile of the GEMM.
inline double quantise_time(const GemmWork& work, const GemmConstants& p) {
    return p.quantise_rate > 0 ? unquantised_bytes(work) / p.quantise_rate : 0;
}

/// Finds the fastest cover, as a library's heuristic would choose it.
class Choice {
public:
    Choice(const Problem& problem, const GemmConstants& p)
        : problem_(problem),
          p_(p),
          least_share_(std::pow(2.0, 1 / p.overlap_exponent - 1)),
          compulsory_(problem.a + problem.b + problem.c) {}

    /// Tries this tile and all ways to split K at most `most_split` times.
    void consider(const GemmTile& tile, double most_split) {
        static const double splits[] = {16, 8, 6, 4, 3, 2, 1};
        const double rows = std::ceil(problem_.m / tile.rows), columns = std::ceil(problem_.n / tile.columns);
        for (const double split : splits) {
            if (split > most_split) continue;
            // Only GEMMs that leave units idle gain from a split.
            if (split > 1 &&
                (problem_.batch * rows * columns > p_.compute_units || problem_.k < split * shortest_split))
                continue;
            consider(cover(problem_, p_, tile, rows, columns, split));
        }
    }
    const Cover& fastest() const { return fastest_; }

private:
    void consider(const Cover& tried) {
        const double compute = compute_time(problem_, p_, tried),
                     reduction = reduction_time(problem_, p_, tried);
        const double top_rate = std::min(p_.hbm, tried.active * p_.unit_bandwidth);
        if (at_least(compute, compulsory_ / top_rate) + reduction >= least_) return;
        const double memory = hbm_bytes(problem_, p_, tried) / memory_rate(p_, tried.active);
        if (at_least(compute, memory) + reduction >= least_) return;
        const double time = smooth_max(compute, memory, p_.overlap_exponent) + reduction;
        if (time >= least_) return;
        least_ = time;
        fastest_ = tried;
    }
    /// A power mean is at least the arithmetic mean: this bound on smooth_max saves most calls of pow.
    double at_least(double a, double b) const { return std::max(std::max(a, b), (a + b) * least_share_); }

    const Problem& problem_;
    const GemmConstants& p_;
    double least_share_, compulsory_;
    double least_ = 1e300;
    Cover fastest_ = {};
};

/// Where `usual_rows` does not divide M, the library also has tiles of any other multiple of `row_step` as rows, no larger
/// than the largest listed tile. Each is taken to be as efficient as the best listed tile that is no larger.
/// cuBLASLt on H200 (traces/h200_4/microbench/parts_1.jsonl, 46 GEMMs of 562 to 9000 such rows): the number of tiles is right
/// for 38 of them, with the listed tiles alone for 14; times are 2.1 % off instead of 4.8. Nothing was fitted to them.
inline void consider_other_rows(const Problem& problem, const GemmConstants& p, double most_split,
                                Choice& choice) {
    if (p.row_step <= 0 || problem.m < usual_rows || std::fmod(problem.m, usual_rows) == 0) return;
    double largest = 0;
    for (std::size_t i = 0; i < p.tile_count; ++i)
        largest = std::max(largest, p.tiles[i].rows * p.tiles[i].columns);
    for (const double columns : {128.0, 192.0, 256.0}) {
        double before = 0;
        for (double rows = usual_rows + p.row_step; rows * columns <= largest; rows += p.row_step) {
            const double count = std::ceil(problem.m / rows);
            if (count == before) continue;  // more padding than the tile before
            before = count;
            GemmTile tile = {rows, columns, 0};
            for (std::size_t i = 0; i < p.tile_count; ++i)
                if (p.tiles[i].rows * p.tiles[i].columns <= rows * columns)
                    tile.efficiency = std::max(tile.efficiency, p.tiles[i].efficiency);
            if (tile.efficiency > 0) choice.consider(tile, most_split);
        }
    }
}

/// The fastest cover of those that split K at most `most_split` times.
inline Cover choose(const Problem& problem, const GemmConstants& p, double most_split = 16) {
    Choice choice(problem, p);
    for (std::size_t i = 0; i < p.tile_count; ++i) choice.consider(p.tiles[i], most_split);
    consider_other_rows(problem, p, most_split, choice);
    return choice.fastest();
}

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

}  // namespace gemm_detail

namespace gemm_detail {

/// The time of a problem on a cover, by its parameters, with what else GemmCost says. `rounds`: on engines with fewer
/// units; null: in waves over all units.
inline GemmCost cost_of(const GemmWork& work, Problem problem, const GemmConstants& p, Cover chosen,
                        double busy, const Rounds* rounds) {
    if (work.accumulate) problem.c_passes = problem.epilogue_factor = 2;
    const double bytes = hbm_bytes(problem, p, chosen);
    const double quantise = quantise_time(work, p);
    if (rounds != nullptr) chosen.waves_cost = rounds->time;
    const double multiply = smooth_max(compute_time(problem, p, chosen),
                                       bytes / memory_rate(p, chosen.active), p.overlap_exponent) +
                            reduction_time(problem, p, chosen);
    const double body = quantise + multiply;
    const double quantised = quantise > 0 ? unquantised_bytes(work) + problem.a : 0;
    const double hot = std::max(body, busy);
    const double full = std::floor(chosen.waves);
    const double tiles = problem.batch * chosen.rows * chosen.columns * chosen.split;
    // Before the last wave
    const double share = rounds != nullptr ? 1 - rounds->last_time / rounds->time : full / chosen.waves_cost;
    const double last_tiles =
        rounds != nullptr ? rounds->last_tiles : std::round((chosen.waves - full) * p.compute_units);
    const bool partial =
        rounds != nullptr ? share > 0 && last_tiles < chosen.active : full > 0 && chosen.waves > full;
    return {p.launch,
            body * (1 + p.sustained_slowdown * hot / (hot + p.sustained_time)),
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
    const Problem problem = describe(work);
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
    const detail::Problem problem = detail::describe(work);
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
