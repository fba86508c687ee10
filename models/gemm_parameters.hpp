#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/core/dtype.hpp"
#include "sim/core/fields.hpp"

namespace overlap {

/// One macro-tile of C that a library kernel computes on one compute unit at a time.
struct GemmTile {
    std::int64_t m = 0;
    std::int64_t n = 0;
    double efficiency = 1.0;  ///< main-loop rate as a fraction of `peak_rate`

    friend bool operator==(const GemmTile&, const GemmTile&) = default;
};

/// The units of a chip where a GEMM has only some of them.
struct GemmChip {
    double dies = 0, engines = 0;  ///< 0: not known
    double first_large_engine = 0;
    double lone_unit_speed = 0, unit_speed_exponent = 0, mask_loss = 0, reserved_loss = 0;
    friend bool operator==(const GemmChip&, const GemmChip&) = default;
};

/// Parameters of a device's GEMM library for one dtype. Fitted values come from
/// configs/calibrations/<device>.json (made by models/calibration/), each with its source and standard error. What each
/// member means stands in `fields()`.
struct GemmParameters {
    struct TileCost {
        Seconds fixed, epilogue;
        friend bool operator==(const TileCost&, const TileCost&) = default;
    };
    struct Memory {
        BytesPerSecond hbm, unit_bandwidth;
        Bytes reuse_cache;
        Seconds start;                 ///< 0: not known
        BytesPerSecond quantise_rate;  ///< 0: no quantise step
        friend bool operator==(const Memory&, const Memory&) = default;
    };
    struct SplitK {
        Seconds fixed;
        BytesPerSecond rate;
        friend bool operator==(const SplitK&, const SplitK&) = default;
    };
    /// By the power cap.
    struct Sustained {
        double slowdown = 0;
        Seconds time;
        friend bool operator==(const Sustained&, const Sustained&) = default;
    };

    double compute_units = 1;
    std::int64_t k_step = 64;
    Seconds launch;
    FlopsPerSecond peak_rate;
    double stride_loss = 0, tail_floor = 1, partial_floor = 1, overlap_exponent = 4;
    std::int64_t row_step = 0;  ///< 0: only `tiles`
    std::vector<GemmTile> tiles;
    TileCost tile;
    Memory memory;
    SplitK split_k;
    Sustained sustained;
    GemmChip chip;

    /// All scalar parameters that a fit may move, in the order of the files.
    static std::span<const Field<GemmParameters>> fields();
    /// Those that it may not.
    static std::span<const Field<GemmParameters>> fixed_fields();

    friend bool operator==(const GemmParameters&, const GemmParameters&) = default;
};

/// The tile of `text`, "256x128". Throws UserError at `key` of `object`.
GemmTile parse_tile(const ConfigObject& object, const std::string& key, const std::string& text);

/// Key of a tile's efficiency: "256x128".
std::string tile_key(const GemmTile& tile);

/// The `gemm` group of a calibration: {"bf16": {"provenance": {…}, "launch_us": {"value", "standard_error",
/// "source"}, …, "tiles": {"256x128": {…}}}}. Throws UserError for unknown, missing or out-of-range values.
std::map<DType, GemmParameters> read_gemm_parameters(ConfigObject& gemm);

/// The schema of one number format's parameters.
Json gemm_parameters_schema();

}  // namespace overlap
