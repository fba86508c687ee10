#pragma once

#include <filesystem>

#include <map>

#include "sim/core/dtype.hpp"
#include "sim/core/fields.hpp"
#include "sim/core/indirect.hpp"
#include "sim/core/what_if.hpp"

namespace overlap {

// Each in a header of its own, device_<group>.hpp.
struct DeviceCopyKernel;
struct DeviceDma;
struct DeviceEnergy;
struct DeviceInterference;
struct DeviceLaunch;
struct DeviceLibrary;
struct DeviceStream;
struct DeviceVariation;

/// What the memory itself does with data that copies bring: it may add them to what it holds.
enum class NearMemory { none, add };
inline const std::array<std::string, 2> near_memory_names{"none", "add"};

/// Immutable facts of one GPU, read from configs/devices/<name>.json, where every value has its source beside
/// it. What has been fitted to measurements is in configs/calibrations/<name>.json instead: values of
/// `calibrated_groups`, and GEMM parameters, which are apart. What each member means stands in the table
/// `fields()` of its struct.
struct DeviceSpec {
    std::string name;
    std::string description;
    std::string like;  ///< device whose GEMM parameters, scaled, replace missing ones; empty: the nearest
    double compute_units = 0;
    std::map<DType, FlopsPerSecond> peak;  ///< data sheet, dense
    Bytes hbm_capacity;
    BytesPerSecond hbm_peak, hbm;
    Bytes last_level_cache;
    NearMemory near_memory = NearMemory::none;
    Watts board_power;

    Indirect<DeviceLaunch> launch;
    Indirect<DeviceDma> dma;
    Indirect<DeviceCopyKernel> copy_kernel;
    Indirect<DeviceStream> stream;
    Indirect<DeviceLibrary> collective_library;
    Indirect<DeviceInterference> interference;
    Indirect<DeviceVariation> variation;
    Indirect<DeviceEnergy> energy{nullptr};  ///< none: not known

    DeviceSpec();

    static std::span<const Field<DeviceSpec>> fields() {
        using D = DeviceSpec;
        static const std::array rows{
            field<&D::compute_units>("compute_units", "Compute units (AMD) or SMs (NVIDIA) of one GPU.")
                .whole()
                .in({1, 100'000}),
            Field<D>::checked("peak_clock_GHz", "Highest engine clock.").in({0.1, 100}),
            field<&D::hbm_capacity>("hbm_capacity_GB", "Memory capacity."),
            field<&D::hbm_peak>("hbm_peak_GBps", "Data-sheet memory bandwidth."),
            field<&D::hbm>("hbm_GBps", "Memory bandwidth that a streaming copy achieves, read plus written.")
                .following("hbm_peak_GBps"),
            field<&D::last_level_cache>("last_level_cache_MB", "Last-level cache (Infinity Cache, else L2)."),
            field<&D::board_power>("board_power_W", "Board power limit of this GPU.").in({1, 1e5}),
            field<&D::near_memory>("near_memory", near_memory_names,
                                   "What the memory does by itself with data that copies bring: nothing, or "
                                   "add them to what it holds, so that a reduction needs no kernel.")};
        return rows;
    }
};

/// Groups of a device file of which a calibration may have some keys, or all.
inline const std::array<std::string, 6> calibrated_groups{"launch",       "dma",       "copy_kernel",
                                                          "interference", "variation", "energy"};

/// Throws UserError on anything but a complete and valid device file.
DeviceSpec read_device(const std::filesystem::path& path);
/// The file and the calibration (configs/schema/calibration.schema.json) are to be complete together, and to
/// have no value twice.
DeviceSpec read_device(const std::filesystem::path& path, ConfigObject calibration);
/// The device of files that have been read; `calibration` may be null.
DeviceSpec read_device(const ConfigFile& device, const ConfigFile* calibration);

}  // namespace overlap
