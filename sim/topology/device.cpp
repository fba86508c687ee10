#include "sim/topology/device.hpp"

#include <algorithm>
#include <cmath>

#include "sim/core/file_version.hpp"
#include "sim/core/numbers.hpp"
#include "sim/core/ranges.hpp"

namespace overlap {
namespace {

/// Reads a whole device file, however many of its values are missing or wrong, and throws all of these errors
/// as one.
class DeviceReader {
public:
    DeviceSpec read(ConfigObject config, ConfigObject* calibration) {
        DeviceSpec device;
        const int version = newest_version("device");
        errors_.keep([&] { config.integer("schema", version, version); });
        errors_.keep([&] { device.name = config.text("name"); });
        if (calibration != nullptr) overlay(config, *calibration, device.name);
        errors_.keep([&] { device.description = config.text("description"); });
        if (config.has("like")) errors_.keep([&] { device.like = config.text("like"); });
        read_fields(config, device, errors_);
        group(config, "peak_TFLOPS", [&](ConfigObject& peaks) { read_peaks(peaks, device); });
        calibrated(config, "launch",
                   [&](ConfigObject& launch) { read_fields(launch, device.launch, errors_); });
        calibrated(config, "dma", [&](ConfigObject& dma) { read_dma(dma, device.dma); });
        calibrated(config, "copy_kernel", [&](ConfigObject& kernel) { read_copy_kernel(kernel, device); });
        if (config.has("collective_library"))
            group(config, "collective_library",
                  [&](ConfigObject& library) { read_library(library, device.collective_library); });
        calibrated(config, "interference",
                   [&](ConfigObject& losses) { read_interference(losses, device.interference); });
        if (config.has("variation"))
            calibrated(config, "variation",
                       [&](ConfigObject& variation) { read_fields(variation, device.variation, errors_); });
        if (config.has("energy"))
            calibrated(config, "energy",
                       [&](ConfigObject& energy) { read_energy(energy, device.energy.emplace()); });
        config.finish(errors_);
        errors_.throw_all(config.file());
        return device;
    }

private:
    static void overlay(ConfigObject& config, ConfigObject& calibration, const std::string& device) {
        const int version = newest_version("calibration");
        calibration.integer("schema", version, version);
        if (const std::string of = calibration.text("device"); !device.empty() && of != device)
            calibration.fail("device", "is '" + of + "', expected '" + device + "'");
        // Read by read_gemm_calibration and read_kernel_calibration
        for (const std::string key : {"gemm", "gemm_library", "gemm_libraries", "validation",
                                      "attention_prefill", "attention_decode", "moe"})
            if (calibration.has(key)) calibration.raw(key);
        if (calibration.has("measured_gemms")) calibration.object("measured_gemms");  // read_gemm_times
        config.overlay(std::move(calibration));
    }

    /// Keeps an error at a key that is there.
    void refuse(ConfigObject& config, const std::string& key, const std::string& message) {
        config.raw(key);
        errors_.keep([&] { config.fail(key, message); });
    }
    /// Calls `read` with an object of the file, and refuses what it does not ask for.
    template <class Read>
    void group(ConfigObject& config, const std::string& name, Read&& read) {
        errors_.keep([&] {
            ConfigObject object = config.object(name);
            read(object);
            object.finish(errors_);
        });
    }
    /// One that a calibration may have keys of.
    template <class Read>
    void calibrated(ConfigObject& config, const std::string& name, Read&& read) {
        group(config, name, [&](ConfigObject& object) {
            if (object.has("provenance")) object.object("provenance");
            read(object);
        });
    }

    void read_dma(ConfigObject& dma, DeviceDma& read) {
        read_fields(dma, read, errors_);
        if (dma.has("commands"))
            group(dma, "commands",
                  [&](ConfigObject& commands) { read_fields(commands, read.commands.emplace(), errors_); });
    }

    void read_copy_kernel(ConfigObject& kernel, DeviceSpec& device) {
        read_fields(kernel, device.copy_kernel, errors_);
        device.stream.strided_run = device.dma.strided_run;
        read_fields(kernel, device.stream, errors_);
    }

    void read_peaks(ConfigObject& peaks, DeviceSpec& device) {
        for (const std::string& key : peaks.keys()) {
            const auto named = std::ranges::find(dtype_names, key);
            if (named == dtype_names.end()) {
                refuse(peaks, key, "is no data type" + suggestion(key, dtype_names));
                continue;
            }
            errors_.keep([&] {
                device.peak[static_cast<DType>(named - dtype_names.begin())] =
                    teraflops(peaks.sourced(key, unit_of("peak_TFLOPS").range));
            });
        }
    }

    /// "bus_GBps_by_channels": {"1": {"value", "source"}, …}, counts below `all`; may be left out.
    void read_by_channels(ConfigObject& fit, double all, DeviceLibrary::Line& line) {
        if (!fit.has("bus_GBps_by_channels")) return;
        group(fit, "bus_GBps_by_channels", [&](ConfigObject& table) {
            for (const std::string& key : table.keys()) {
                const int channels = parsed<int>(key).value_or(0);
                if (channels >= 1 && channels < all)
                    errors_.keep([&] {
                        line.bus_by_channels[channels] =
                            gigabytes_per_second(table.sourced(key, unit_of("bus_GBps").range));
                    });
                else
                    refuse(table, key,
                           "is no number of channels from 1 to " + std::to_string(std::llround(all) - 1));
            }
        });
    }

    /// "2": {"source", "bytes": [rising], "us": [as many]}, by number of GPUs.
    DeviceLibrary::TimesByRanks read_times(ConfigObject& config) {
        DeviceLibrary::TimesByRanks times;
        group(config, "by_ranks", [&](ConfigObject& by_ranks) {
            for (const std::string& key : by_ranks.keys()) {
                const int ranks = parsed<int>(key).value_or(0);
                if (ranks < 2) {
                    refuse(by_ranks, key, "is no number of GPUs (allowed: whole numbers from 2)");
                    continue;
                }
                group(by_ranks, key, [&](ConfigObject& table) {
                    table.text("source");
                    if (table.has("error_pct")) table.number("error_pct", {0, 1000});
                    const std::vector<double> bytes = table.numbers("bytes", {1, 1e15}),
                                              us = table.numbers("us", {1e-3, 1e9});
                    if (bytes.empty() || bytes.size() != us.size() ||
                        std::ranges::adjacent_find(bytes, std::greater_equal()) != bytes.end())
                        table.fail("bytes", "must be rising numbers, one for each value of 'us'");
                    for (std::size_t i = 0; i < bytes.size(); ++i)
                        times[ranks].emplace_back(Bytes(bytes[i]), microseconds(us[i]));
                });
            }
        });
        return times;
    }

    void read_all_reduce(ConfigObject& config, DeviceLibrary::AllReduce& kernel) {
        errors_.keep([&] { kernel.name = config.text("name"); });
        read_fields(config, kernel, errors_);
        kernel.times = read_times(config);
    }

    void read_library(ConfigObject& config, DeviceLibrary& library) {
        errors_.keep([&] { library.name = config.text("name"); });
        read_fields(config, library, errors_);
        if (config.has("all_reduce_kernels"))
            group(config, "all_reduce_kernels", [&](ConfigObject& kernels) {
                for (const CollectiveKernel kernel : all_reduce_kernels)
                    if (kernels.has(name_of(kernel)))
                        group(kernels, name_of(kernel), [&](ConfigObject& from) {
                            read_all_reduce(from, library.all_reduces[kernel]);
                        });
            });
        const auto line = [&](ConfigObject& from, DeviceLibrary::Line& to) {
            read_fields(from, to, errors_);
            read_by_channels(from, library.channels, to);
        };
        for (std::size_t kind = 0; kind < collective_names.size(); ++kind) {
            if (!config.has(collective_names[kind])) continue;
            group(config, collective_names[kind], [&](ConfigObject& from) {
                DeviceLibrary::Fit& fit = library.collectives[static_cast<CollectiveKind>(kind)];
                line(from, fit);
                read_fields(from, fit, errors_);
                const auto protocol = [&](const std::string& key, std::optional<DeviceLibrary::Line>& of) {
                    if (!from.has(key)) return;
                    group(from, key, [&](ConfigObject& operands) { line(operands, of.emplace()); });
                };
                protocol("small", fit.small);
                protocol("smallest", fit.smallest);
                if (from.has("by_ranks")) fit.times = read_times(from);
            });
        }
    }

    void read_interference(ConfigObject& config, DeviceInterference& interference) {
        read_fields(config, interference, errors_);
        if (!config.has("weights")) return;
        group(config, "weights", [&](ConfigObject& weights) {
            for (const std::string& resource : weights.keys()) {
                if (!contains(weighted_resources, resource)) {
                    refuse(weights, resource,
                           "is no resource that has weights" + suggestion(resource, weighted_resources));
                    continue;
                }
                auto& by_class = interference.weights[resource];
                by_class.fill(1.0);
                group(weights, resource, [&](ConfigObject& given) {
                    for (std::size_t kind = 0; kind < task_class_names.size(); ++kind)
                        if (given.has(task_class_names[kind]))
                            errors_.keep([&] {
                                by_class[kind] = given.sourced(task_class_names[kind], weight_range);
                            });
                });
            }
        });
    }

    void read_energy(ConfigObject& config, DeviceEnergy& energy) {
        read_fields(config, energy, errors_);
        for (std::size_t dtype = 0; dtype < dtype_names.size(); ++dtype)
            if (const std::string key = dtype_names[dtype] + "_pJ_per_flop"; config.has(key))
                errors_.keep([&] {
                    const Unit& unit = unit_of(key);
                    energy.gemm[static_cast<DType>(dtype)] =
                        JoulesPerFlop(config.sourced(key, unit.range) * unit.factor);
                });
    }

    KeptErrors errors_;
};

}  // namespace

DeviceSpec read_device(const std::filesystem::path& path) {
    const ConfigFile file = read_config_file(path, "device");
    return DeviceReader().read(file.view(), nullptr);
}

DeviceSpec read_device(const std::filesystem::path& path, ConfigObject calibration) {
    const ConfigFile file = read_config_file(path, "device");
    return DeviceReader().read(file.view(), &calibration);
}

DeviceSpec read_device(const ConfigFile& device, const ConfigFile* calibration) {
    if (calibration == nullptr) return DeviceReader().read(device.view(), nullptr);
    ConfigObject fitted = calibration->view();
    return DeviceReader().read(device.view(), &fitted);
}

}  // namespace overlap
