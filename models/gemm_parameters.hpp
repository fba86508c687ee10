#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "sim/core/config_reader.hpp"
#include "sim/core/dtype.hpp"
#include "sim/core/units.hpp"

namespace overlap {

/// One macro-tile of C that a library kernel computes on one compute unit at a time.
struct GemmTile {
    std::int64_t m = 0;
    std::int64_t n = 0;
    double efficiency = 1.0;  ///< main-loop rate as a fraction of `peak_rate`

    friend bool operator==(const GemmTile&, const GemmTile&) = default;
};

/// Parameters of a device's GEMM library for one dtype. Fitted values come from
/// configs/calibrations/<device>.json (made by models/calibration/), each with its source and standard error.
struct GemmParameters {
    double compute_units = 1;  ///< CUs or SMs that the kernel may use
    std::int64_t k_step = 64;  ///< K is padded to a multiple of this (main-loop depth of the kernels)
    Seconds launch;            ///< kernel start and end, independent of the shape
    Seconds tile_fixed;        ///< prologue of a tile: first loads, pipeline fill
    Seconds tile_epilogue;     ///< storing a 128×128 tile of C; proportional to the tile's area
    /// All units together, in a short kernel with deep K: the limit of clock and power
    FlopsPerSecond peak_rate;
    /// Extra main-loop time per kB of K if rows of A and B are multiples of conflicting_row
    double stride_loss = 0;
    double tail_floor = 1;     ///< cost of an almost empty last wave, in full waves
    double partial_floor = 1;  ///< cost of an almost empty only wave, in full waves (the clock is higher)
    BytesPerSecond hbm;        ///< achieved memory rate with all units reading
    BytesPerSecond unit_bandwidth;  ///< most that one compute unit draws from memory
    /// p in (compute^p + memory^p)^(1/p): 1 is no overlap, ∞ is perfect overlap
    double overlap_exponent = 4;
    Bytes reuse_cache;      ///< working set at which a quarter of the re-reads miss the last-level cache
    Seconds split_k_fixed;  ///< extra time of a split-K kernel: its reduction pass
    BytesPerSecond split_k_rate;  ///< rate of reducing the fp32 partial results
    /// Extra time of a kernel much longer than `sustained_time`: the power cap lowers the clock
    double sustained_slowdown = 0;
    Seconds sustained_time;  ///< duration at which half of that slowdown is reached
    std::vector<GemmTile> tiles;

    friend bool operator==(const GemmParameters&, const GemmParameters&) = default;
};

/// One scalar parameter as it stands in JSON: the unit is in the key.
struct GemmField {
    std::string key;
    Range range;                           ///< refused outside
    double (*get)(const GemmParameters&);  ///< in the key's unit
    void (*set)(GemmParameters&, double in_unit);
};
/// All scalar parameters that a fit may move, in the order of the files.
/// Reader, writer and fit share this list.
std::span<const GemmField> gemm_fields();

/// Key of a tile's efficiency: "256x128".
std::string tile_key(const GemmTile& tile);

/// The `gemm` group of a calibration: {"bf16": {"provenance": {…}, "launch_us": {"value", "standard_error",
/// "source"}, …, "tiles": {"256x128": {…}}}}. Throws UserError for unknown, missing or out-of-range values.
std::map<DType, GemmParameters> read_gemm_parameters(ConfigObject& gemm);

}  // namespace overlap
