#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstddef>

#include "models/gemm_parameters.hpp"
#include "sim/core/operators.hpp"

/// Tiles that a GEMM library chooses and how long they take, in plain SI numbers: the formulas of gemm_model.hpp.
namespace overlap::gemm_detail {

constexpr double shortest_split = 256;             // least K of a split; less is never faster in the tables
constexpr double reference_tile_area = 128 * 128;  // elements of C that `tile_epilogue` is given for
constexpr double conflicting_row = 512;            // bytes; see stride_slowdown
// bytes; no table has longer rows, so the loss grows no further
constexpr double longest_strided_row = 16384;
constexpr double partial_result_bytes = 4;  // split-K partials are fp32
constexpr std::size_t most_engines = 64;
constexpr double less_rounding = 1 - 1e-9;  // a lower bound stays one whatever is rounded
constexpr double usual_rows = 64;           // rows; see has_other_rows
constexpr double most_splits = 16;

/// The problem's sizes, which do not depend on the tile.
struct Problem {
    double batch, m, n, k;
    double operand_element;            // bytes
    double a, b, c;                    // bytes of the matrices, of the whole batch
    double c_passes, epilogue_factor;  // 1, or 2 when C is read as well
    double memory_start;               // s
    bool strided;                      // rows of A and B lie on few memory channels; see stride_slowdown
};

inline Problem describe(const GemmShape& shape, const GemmParameters& p, bool warm = false) {
    assert(shape.m >= 1 && shape.n >= 1 && shape.k >= 1);
    const auto m = static_cast<double>(shape.m), n = static_cast<double>(shape.n),
               k = static_cast<double>(shape.k), batch = static_cast<double>(shape.batch);
    const double operand = element_size(shape.dtype).si(),
                 output = element_size(output_type(shape.dtype)).si(),
                 weight = shape.weight_bits > 0 ? shape.weight_bits / 8 : operand;
    return {batch,
            m,
            n,
            k,
            operand,
            batch * (m * k * operand),
            batch * (k * n * weight),
            batch * (m * n * output),
            1,
            1,
            warm ? 0 : p.memory.start.si(),
            std::fmod(k * operand, conflicting_row) == 0};
}

/// Time of a tile while `share` of the units work, relative to all at work: the units share power and caches. A
/// unit alone is `lone_unit_speed` times as fast as one of all; 0 without this parameter. `loss`: extra time, as a
/// share, in what the units share.
inline double tile_time(double share, const GemmParameters& p, double loss = 0) {
    if (p.chip.lone_unit_speed <= 1) return 0;
    const double shared = std::pow(p.chip.lone_unit_speed, p.chip.unit_speed_exponent) - 1;
    return std::pow((1 + shared * std::pow((1 + loss) * share, p.chip.unit_speed_exponent)) / (1 + shared),
                    1 / p.chip.unit_speed_exponent);
}

/// Cost of `waves` in full waves. A partial wave is cheaper: with few units busy the clock
/// rises and memory is free. `least`: without the tile_time of a partial wave, so no more than the cost.
inline double effective_waves(double waves, const GemmParameters& p, bool least = false) {
    const double full = std::floor(waves);
    const double filled = waves - full;
    const double floor = full > 0 ? p.tail_floor : p.partial_floor;
    if (filled <= 0) return full;
    const double partial = floor + (1 - floor) * filled;
    return full + (least ? partial : std::max(partial, tile_time(filled, p)));
}

/// A chip with only `units` of its units. Without `lone_unit_speed` each keeps its rate. `loss` as in tile_time.
inline GemmParameters on_units(const GemmParameters& constants, double units, double loss = 0) {
    GemmParameters p = constants;
    const double share = units / p.compute_units, time = tile_time(share, p, loss);
    p.peak_rate = p.peak_rate * share;
    if (time > 0) p.peak_rate = p.peak_rate / time, p.chip.lone_unit_speed = p.chip.lone_unit_speed * time;
    p.compute_units = units;
    return p;
}

/// A listed tile, or another one of the library.
struct Tile {
    double rows, columns;
    double efficiency;  ///< main-loop rate as a fraction of `peak_rate`
};

/// One choice of tile and split-K for the problem.
struct Tiling {
    Tile tile;
    double rows, columns;  // of tiles, of one GEMM of the batch
    double split;
    double depth;  // K of one split, padded
    double waves, waves_cost;
    double active;  // compute units
};

/// `least`: see effective_waves
inline Tiling tiling_of(const Problem& problem, const GemmParameters& p, const Tile& tile, double rows,
                        double columns, double split, bool least = false) {
    const double tiles = problem.batch * rows * columns * split, waves = tiles / p.compute_units;
    return {tile,
            rows,
            columns,
            split,
            std::ceil(problem.k / split / static_cast<double>(p.k_step)) * static_cast<double>(p.k_step),
            waves,
            effective_waves(waves, p, least),
            std::min(tiles, p.compute_units)};
}

/// Bytes to and from HBM. A wave covers a block of tiles that is as square as possible in elements of C, and
/// reads that block's rows of A and columns of B. A library sweeps along the larger matrix, so the re-read
/// working set is the smaller matrix and one wave. The fraction of re-reads that misses the last-level cache
/// grows smoothly with this working set.
inline double hbm_bytes(const Problem& problem, const GemmParameters& p, const Tiling& tiling) {
    const double tm = tiling.tile.rows, tn = tiling.tile.columns;
    const double one = tiling.rows * tiling.columns;  // tiles of one GEMM of the batch
    const double together = std::max(1.0, tiling.active / tiling.split / one);
    const double wave_tiles = tiling.active / tiling.split / together;
    double wave_rows = std::min(std::max(std::sqrt(wave_tiles * tn / tm), 1.0), tiling.rows);
    const double wave_columns = std::min(std::max(wave_tiles / wave_rows, 1.0), tiling.columns);
    wave_rows = std::min(std::max(wave_tiles / wave_columns, 1.0), tiling.rows);
    const double wave = together * (wave_rows * tm + wave_columns * tn) * problem.k * problem.operand_element;
    const double reread = std::max(0.0, wave * std::max(1.0, tiling.waves) - problem.a - problem.b);
    const double working_set = std::min(problem.a, problem.b) / problem.batch + wave;
    const double overflow = working_set / (working_set + p.memory.reuse_cache.si());
    return problem.a + problem.b + problem.c * problem.c_passes + reread * overflow * overflow;
}

/// Memory rate with `active` units reading: linear at first, then that of
/// HBM; the corner is rounded (4-norm).
inline double memory_rate(const GemmParameters& p, double active) {
    const double ratio = p.memory.hbm.si() / (active * p.memory.unit_bandwidth.si());
    const double fourth = ratio * ratio * ratio * ratio;
    return p.memory.hbm.si() / std::sqrt(std::sqrt(1 + fourth));
}

/// Time to read `bytes`. Where `memory_start` is known, operands in no cache stream at the full rate only after it.
inline double memory_time(const Problem& problem, const GemmParameters& p, double bytes, double active) {
    return problem.memory_start + bytes / memory_rate(p, active);
}

/// (a^p + b^p)^(1/p); the power of the larger alone may be too small for a double
inline double smooth_max(double a, double b, double exponent) {
    const double high = std::max(a, b), low = std::min(a, b);
    return high == 0 ? 0 : high * std::pow(1 + std::pow(low / high, exponent), 1 / exponent);
}

/// If the row length of A and B is a multiple of 512 B, the rows lie on few memory channels. Tiles that
/// run side by side then drift apart and lose each other's cache lines, more so with larger K. MI300X
/// fp8 (public table, N = 5120, M >= 8192): 830 to 905 TFLOPS at K = 2176, 4352, 6400, but 840, 800,
/// 750 at 4096, 5120, 12800.
inline double stride_slowdown(const Problem& problem, const GemmParameters& p, double depth) {
    if (!problem.strided) return 1;
    return 1 + p.stride_loss * std::min(depth * problem.operand_element, longest_strided_row) / 1e3;
}

inline double compute_time(const Problem& problem, const GemmParameters& p, const Tiling& tiling) {
    const double area = tiling.tile.rows * tiling.tile.columns;
    const double unit_rate = p.peak_rate.si() / p.compute_units * tiling.tile.efficiency;
    const double overhead =
        p.tile.fixed.si() + p.tile.epilogue.si() * problem.epilogue_factor * area / reference_tile_area;
    const double main_loop = 2 * area * tiling.depth / unit_rate * stride_slowdown(problem, p, tiling.depth);
    return (main_loop + overhead) * tiling.waves_cost;
}

inline double partial_results(const Problem& problem, const Tiling& tiling) {
    return tiling.split > 1 ? problem.batch * problem.m * problem.n * partial_result_bytes * tiling.split : 0;
}

inline double reduction_time(const Problem& problem, const GemmParameters& p, const Tiling& tiling) {
    return tiling.split > 1 ? p.split_k.fixed.si() + partial_results(problem, tiling) / p.split_k.rate.si()
                            : 0;
}

/// Bytes of A as the kernel before writes it (bf16), which a quantise step reads.
inline double unquantised_bytes(const Problem& problem) {
    return problem.batch * problem.m * problem.k * 2;
}

/// The step that turns A from bf16 into the operand type, before the first tile of the GEMM.
inline double quantise_time(const Problem& problem, const GemmParameters& p) {
    return p.memory.quantise_rate.si() > 0 ? unquantised_bytes(problem) / p.memory.quantise_rate.si() : 0;
}

/// Finds the fastest tiling, as a library's heuristic would choose it.
class Choice {
public:
    /// Looks for covers that take less than `least`, s.
    Choice(const Problem& problem, const GemmParameters& p, double least = 1e300)
        : problem_(problem),
          p_(p),
          least_share_(std::pow(2.0, 1 / p.overlap_exponent - 1)),
          compulsory_(problem.a + problem.b + problem.c),
          least_(least) {}

    /// Tries this tile and all ways to split K at most `most_split` times.
    void consider(const Tile& tile, double most_split) {
        static const double splits[] = {16, 8, 6, 4, 3, 2, 1};
        const double rows = std::ceil(problem_.m / tile.rows), columns = std::ceil(problem_.n / tile.columns);
        // The least time, however K is split: all units multiply all the time, at this tile's rate.
        const double work =
            2 * problem_.batch * (rows * tile.rows) * (columns * tile.columns) * problem_.k * less_rounding;
        if (work >= least_ * p_.peak_rate.si() * tile.efficiency) return;
        for (const double split : splits) {
            if (split > most_split) continue;
            // Only GEMMs that leave units idle gain from a split.
            if (split > 1 &&
                (problem_.batch * rows * columns > p_.compute_units || problem_.k < split * shortest_split))
                continue;
            consider(tiling_of(problem_, p_, tile, rows, columns, split, true));
        }
    }
    const Tiling& fastest() const { return fastest_; }
    double time() const { return least_; }

private:
    /// `tried`: with the least cost of its waves. Before the time itself, lower bounds of it, the cheapest first.
    void consider(Tiling tried) {
        const double reduction = reduction_time(problem_, p_, tried);
        const double compulsory =
            compulsory_ / std::min(p_.memory.hbm.si(), tried.active * p_.memory.unit_bandwidth.si());
        if (at_least(compute_time(problem_, p_, tried), compulsory) + reduction >= least_) return;
        tried.waves_cost = effective_waves(tried.waves, p_);
        const double compute = compute_time(problem_, p_, tried);
        if (at_least(compute, compulsory) + reduction >= least_) return;
        const double memory = memory_time(problem_, p_, hbm_bytes(problem_, p_, tried), tried.active);
        if (at_least(compute, memory) + reduction >= least_) return;
        const double time = smooth_max(compute, memory, p_.overlap_exponent) + reduction;
        if (time >= least_) return;
        least_ = time;
        fastest_ = tried;
    }
    /// A power mean is at least the arithmetic mean: this bound on smooth_max saves most calls of pow.
    double at_least(double a, double b) const { return std::max(std::max(a, b), (a + b) * least_share_); }

    const Problem& problem_;
    const GemmParameters& p_;
    double least_share_, compulsory_, least_;
    Tiling fastest_ = {};
};

/// The rows of further tiles: where `usual_rows` does not divide M, the library also has tiles of any other multiple
/// of `row_step` as rows, no larger than the largest listed tile. cuBLASLt on H200
/// (traces/h200_4/microbench/parts_1.jsonl, 46 GEMMs of 562 to 9000 such rows): the number of tiles is right for 38
/// of them, with the listed tiles alone for 14; times are 2.1 % off instead of 4.8. Nothing was fitted to them.
inline bool has_other_rows(const Problem& problem, const GemmParameters& p) {
    return static_cast<double>(p.row_step) > 0 && problem.m >= usual_rows &&
           std::fmod(problem.m, usual_rows) != 0;
}

/// Efficiency of a tile that is not listed: that of the best listed tile that is no larger; 0 if all are.
inline double other_efficiency(const GemmParameters& p, double rows, double columns) {
    double efficiency = 0;
    for (const GemmTile& tile : p.tiles)
        if (static_cast<double>(tile.m * tile.n) <= rows * columns)
            efficiency = std::max(efficiency, tile.efficiency);
    return efficiency;
}

/// Calls `take` with every tile that the library has for the problem, the listed ones first.
template <class Take>
void each_tile(const Problem& problem, const GemmParameters& p, Take take) {
    double largest = 0;
    for (const GemmTile& tile : p.tiles) {
        take(Tile{static_cast<double>(tile.m), static_cast<double>(tile.n), tile.efficiency});
        largest = std::max(largest, static_cast<double>(tile.m * tile.n));
    }
    if (!has_other_rows(problem, p)) return;
    for (const double columns : {128.0, 192.0, 256.0}) {
        double before = 0;
        for (double rows = usual_rows + static_cast<double>(p.row_step); rows * columns <= largest;
             rows += static_cast<double>(p.row_step)) {
            const double count = std::ceil(problem.m / rows);
            if (count == before) continue;  // more padding than the tile before
            before = count;
            const double efficiency = other_efficiency(p, rows, columns);
            if (efficiency > 0) take(Tile{rows, columns, efficiency});
        }
    }
}

/// The fastest tiling of those that split K at most `most_split` times.
inline Tiling choose(const Problem& problem, const GemmParameters& p, double most_split = most_splits) {
    Choice choice(problem, p);
    each_tile(problem, p, [&](const Tile& tile) { choice.consider(tile, most_split); });
    return choice.fastest();
}

}  // namespace overlap::gemm_detail
