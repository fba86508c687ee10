#pragma once

#include <filesystem>
#include <string>

#include "sim/calibrate/fits/fit_gemm.hpp"
#include "sim/core/input_keys.hpp"
#include "sim/topology/device.hpp"

namespace overlap {

/// Macro-tiles of a kernel library.
struct TileList {
    std::vector<GemmTile> tiles;
    std::int64_t row_step = 0;  ///< GemmParameters::row_step
};

/// What a GEMM prior depends on: the device and the macro-tiles of its kernel library.
struct GemmHardware {
    double units = 0;  ///< compute units
    FlopsPerSecond peak;
    double peak_spread = 1.3;
    BytesPerSecond hbm;
    Bytes cache;
    std::int64_t k_step = 64;
    double stride_loss = 0;
    Seconds launch = microseconds(4), tile_epilogue = microseconds(0.5), split_k_fixed = microseconds(3);
    BytesPerSecond quantise_rate;  ///< 0: the times have no quantise step
    GemmChip chip;
    Seconds memory_start;    ///< 0: not fitted
    int rows_of_family = 4;  ///< as GemmPrior::rows_of_family
    /// Parameters of a machine whose clock falls only after 40 to 100 ms of GEMMs without a pause.
    bool slow_sustained_clock = false;
    std::string tiles;  ///< the name of `tile_list` in a recipe
    TileList tile_list;

    static const std::vector<InputKey<GemmHardware>>& keys();
};

/// Macro-tiles by the names that recipes use: configs/calibrations/recipes/tiles.json.
class TileLists {
public:
    /// Throws UserError.
    explicit TileLists(const std::filesystem::path& file);
    TileLists() = default;
    static std::span<const InputKey<TileLists>> keys();

    /// Throws UserError at `place` of `recipe` if no list has that name.
    const TileList& at(const std::string& name, const ConfigObject& recipe, const std::string& place) const;
    /// The list of the library that frameworks call on the GPUs of "NVIDIA" or "AMD".
    const TileList& of_platform(const std::string& platform) const;

private:
    std::map<std::string, TileList> lists_;
    std::map<std::string, std::string> of_platform_;
};

Json tiles_schema();

/// One prior for all devices, in which only properties of the hardware differ. Values are rough estimates: a kernel
/// floor of 2.5 to 7 µs and achieved HBM rates as published, 60 units to saturate HBM as in AMD's Origami model, tile
/// efficiency falling with area^0.15, a power cap that costs 10 % in the long run.
GemmPrior gemm_prior(const GemmHardware& hardware);

/// The hardware of a device that nobody wrote a recipe for. `platform`: "NVIDIA" or "AMD".
GemmHardware gemm_hardware_of(const DeviceSpec& device, const std::string& platform, const TileLists& tiles);

}  // namespace overlap
