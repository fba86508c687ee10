#include "models/gemm_model.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <limits>
#include <optional>

namespace overlap {
namespace {

constexpr std::array<double, 7> split_k_choices{16, 8, 6, 4, 3, 2, 1};
constexpr double shortest_split = 256;  // K a split keeps at least; less is never faster in the tables
constexpr double reference_tile_area = 128 * 128;  // `tile_epilogue` is of this many elements of C
constexpr double conflicting_row = 512;            // bytes; see stride_slowdown
constexpr double longest_strided_row =
    16'384;                                 // bytes: no table has longer ones, so the loss grows no further
constexpr double partial_result_bytes = 4;  // split-K partials are fp32

double ceil_div(double a, double b) {
    return std::ceil(a / b);
}

/// What does not depend on the tile.
struct Problem {
    double batch, m, n, k;
    double operand_element;            // bytes
    double a, b, c;                    // bytes of the matrices, of the whole batch
    double c_passes, epilogue_factor;  // 1, or 2 when C is read as well
};

Problem describe(const GemmShape& shape) {
    const auto batch = static_cast<double>(shape.batch);
    return {.batch = batch,
            .m = static_cast<double>(shape.m),
            .n = static_cast<double>(shape.n),
            .k = static_cast<double>(shape.k),
            .operand_element = element_size(shape.dtype).si(),
            .a = batch * matrix_size(shape.m, shape.k, shape.dtype).si(),
            .b = batch * matrix_size(shape.k, shape.n, shape.dtype).si(),
            .c = batch * matrix_size(shape.m, shape.n, output_type(shape.dtype)).si(),
            .c_passes = 1,
            .epilogue_factor = 1};
}

/// Full waves that `waves` cost. The tail is soft: with few units busy the clock rises and memory is free.
double effective_waves(double waves, const GemmParameters& p) {
    const double full = std::floor(waves);
    const double filled = waves - full;
    const double floor = full > 0 ? p.tail_floor : p.partial_floor;
    return filled > 0 ? full + floor + (1 - floor) * filled : full;
}

/// How one tile and split-K cover the problem.
struct Cover {
    const GemmTile* tile = nullptr;
    double rows = 0, columns = 0;  // of tiles, of one GEMM of the batch
    double split = 1;
    double depth = 0;  // K of one split, padded
    double waves = 0, waves_cost = 0;
    double active = 0;  // compute units
};

Cover cover(const Problem& problem, const GemmParameters& p, const GemmTile& tile, double rows,
            double columns, double split) {
    const auto k_step = static_cast<double>(p.k_step);
    const double tiles = problem.batch * rows * columns * split, waves = tiles / p.compute_units;
    return {.tile = &tile,
            .rows = rows,
            .columns = columns,
            .split = split,
            .depth = ceil_div(problem.k / split, k_step) * k_step,
            .waves = waves,
            .waves_cost = effective_waves(waves, p),
            .active = std::min(tiles, p.compute_units)};
}

/// Bytes that go to and from HBM. One wave covers a block of tiles, as square as it can be in elements of C,
/// and reads that block's rows of A and columns of B. A library sweeps along the larger matrix, so what is
/// read again comes back after the smaller one and a wave: with that working set, re-reads miss the
/// last-level cache smoothly.
double hbm_bytes(const Problem& problem, const GemmParameters& p, const Cover& cover) {
    const auto tm = static_cast<double>(cover.tile->m), tn = static_cast<double>(cover.tile->n);
    const double one = cover.rows * cover.columns;  // tiles of one GEMM of the batch, and so many at a time:
    const double together = std::max(1.0, cover.active / cover.split / one);
    const double wave_tiles = cover.active / cover.split / together;
    double wave_rows = std::min(std::max(std::sqrt(wave_tiles * tn / tm), 1.0), cover.rows);
    const double wave_columns = std::min(std::max(wave_tiles / wave_rows, 1.0), cover.columns);
    wave_rows = std::min(std::max(wave_tiles / wave_columns, 1.0), cover.rows);
    const double wave = together * (wave_rows * tm + wave_columns * tn) * problem.k * problem.operand_element;
    const double reread = std::max(0.0, wave * std::max(1.0, cover.waves) - problem.a - problem.b);
    const double working_set = std::min(problem.a, problem.b) / problem.batch + wave;
    const double overflow = working_set / (working_set + p.reuse_cache.si());
    return problem.a + problem.b + problem.c * problem.c_passes + reread * overflow * overflow;
}

/// Rate with `active` units drawing: linear in them at first, then HBM's; the corner is rounded (4-norm).
double memory_rate(const GemmParameters& p, double active) {
    const double ratio = p.hbm.si() / (active * p.unit_bandwidth.si());
    const double fourth = ratio * ratio * ratio * ratio;
    return p.hbm.si() / std::sqrt(std::sqrt(1 + fourth));
}

/// (a^p + b^p)^(1/p)
double smooth_max(double a, double b, double exponent) {
    const double high = std::max(a, b), low = std::min(a, b);
    return high * std::pow(1 + std::pow(low / high, exponent), 1 / exponent);
}

/// Rows of A and B whose length is a multiple of 512 B lie on few of the memory channels, and the tiles that
/// run side by side lose step and so each other's cache lines, the more the deeper they go. MI300X fp8
/// (public table, N = 5120, M >= 8192): 830 to 905 TFLOPS at K = 2176, 4352, 6400, but 840, 800, 750 at 4096,
/// 5120, 12800.
double stride_slowdown(const Problem& problem, const GemmParameters& p, double depth) {
    if (std::fmod(problem.k * problem.operand_element, conflicting_row) != 0) return 1;
    return 1 + p.stride_loss * std::min(depth * problem.operand_element, longest_strided_row) / 1e3;
}

double compute_time(const Problem& problem, const GemmParameters& p, const Cover& cover) {
    const double area = static_cast<double>(cover.tile->m) * static_cast<double>(cover.tile->n);
    const double unit_rate = p.peak_rate.si() / p.compute_units * cover.tile->efficiency;
    const double overhead =
        p.tile_fixed.si() + p.tile_epilogue.si() * problem.epilogue_factor * area / reference_tile_area;
    const double main_loop = 2 * area * cover.depth / unit_rate * stride_slowdown(problem, p, cover.depth);
    return (main_loop + overhead) * cover.waves_cost;
}

double partial_results(const Problem& problem, const Cover& cover) {
    return cover.split > 1 ? problem.batch * problem.m * problem.n * partial_result_bytes * cover.split : 0;
}

double reduction_time(const Problem& problem, const GemmParameters& p, const Cover& cover) {
    return cover.split > 1 ? p.split_k_fixed.si() + partial_results(problem, cover) / p.split_k_rate.si() : 0;
}

/// The fastest cover, as a library's heuristic would pick it.
Cover choose(const Problem& problem, const GemmParameters& p) {
    // A power mean is at least the arithmetic mean: a bound on smooth_max that saves most calls of pow.
    const double least_share = std::pow(2.0, 1 / p.overlap_exponent - 1);
    const auto at_least = [least_share](double a, double b) {
        return std::max({a, b, (a + b) * least_share});
    };
    const double compulsory = problem.a + problem.b + problem.c;
    double best = std::numeric_limits<double>::infinity();
    Cover result;
    for (const GemmTile& tile : p.tiles) {
        const double rows = ceil_div(problem.m, static_cast<double>(tile.m));
        const double columns = ceil_div(problem.n, static_cast<double>(tile.n));
        for (const double split : split_k_choices) {
            // Splitting is for GEMMs that leave units idle.
            if (split > 1 &&
                (problem.batch * rows * columns > p.compute_units || problem.k < split * shortest_split))
                continue;
            const Cover tried = cover(problem, p, tile, rows, columns, split);
            const double compute = compute_time(problem, p, tried),
                         reduction = reduction_time(problem, p, tried);
            const double top_rate = std::min(p.hbm.si(), tried.active * p.unit_bandwidth.si());
            if (at_least(compute, compulsory / top_rate) + reduction >= best) continue;
            const double memory = hbm_bytes(problem, p, tried) / memory_rate(p, tried.active);
            if (at_least(compute, memory) + reduction >= best) continue;
            const double time = smooth_max(compute, memory, p.overlap_exponent) + reduction;
            if (time >= best) continue;
            best = time;
            result = tried;
        }
    }
    return result;
}

GemmParameters with_units(GemmParameters p, double units) {
    p.peak_rate = p.peak_rate * (units / p.compute_units);
    p.compute_units = units;
    return p;
}

}  // namespace

GemmEstimate estimate_gemm(const GemmShape& shape, const GemmParameters& parameters, Seconds busy,
                           int units) {
    assert(shape.m >= 1 && shape.n >= 1 && shape.k >= 1 && !parameters.tiles.empty());
    Problem problem = describe(shape);
    Cover chosen = choose(problem, parameters);  // by shape alone: libraries do not look at beta
    std::optional<GemmParameters> masked;
    if (units > 0 && units < parameters.compute_units) {
        masked = with_units(parameters, units);
        chosen = cover(problem, *masked, *chosen.tile, chosen.rows, chosen.columns, chosen.split);
    }
    const GemmParameters& p = masked ? *masked : parameters;
    if (shape.accumulate) problem.c_passes = problem.epilogue_factor = 2;
    const double bytes = hbm_bytes(problem, p, chosen);
    const double body = smooth_max(compute_time(problem, p, chosen), bytes / memory_rate(p, chosen.active),
                                   p.overlap_exponent) +
                        reduction_time(problem, p, chosen);
    const double hot = std::max(body, busy.si());
    const double full = std::floor(chosen.waves);
    const bool partial = full > 0 && chosen.waves > full;
    return {.launch = p.launch,
            .body = Seconds(body * (1 + p.sustained_slowdown * hot / (hot + p.sustained_time.si()))),
            .hbm_traffic = Bytes(bytes + 2 * partial_results(problem, chosen)),
            .compute_units_busy = std::min(chosen.active, problem.batch * chosen.rows * chosen.columns *
                                                              chosen.split / chosen.waves_cost),
            .tile_m = chosen.tile->m,
            .tile_n = chosen.tile->n,
            .split_k = static_cast<std::int64_t>(chosen.split),
            .waves = chosen.waves,
            .last_wave = partial ? full / chosen.waves_cost : 1,
            .last_tiles = partial ? std::round((chosen.waves - full) * p.compute_units) : 0};
}

}  // namespace overlap
