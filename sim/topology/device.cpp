#include "sim/topology/device.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "sim/core/config_reader.hpp"
#include "sim/core/kept_errors.hpp"
#include "sim/core/whole_number.hpp"

namespace overlap {
namespace {

constexpr Range sane_time_us{0.0, 1e6};
constexpr Range sane_rate_GBps{1e-3, 1e7};
const std::array<std::string, 5> weighted_resources{"cu", "hbm", "dma", "remote_read", "link"};

/// Reads a whole device file, however many of its values are missing or wrong, and throws all of these errors
/// as one.
class DeviceReader {
public:
    DeviceSpec read(ConfigObject config, ConfigObject* calibration) {
        DeviceSpec device;
        errors_.keep([&] { config.integer("schema", 1, 1); });
        errors_.keep([&] { device.name = config.text("name"); });
        if (calibration != nullptr) overlay(config, *calibration, device.name);
        errors_.keep([&] { device.description = config.text("description"); });
        device.compute_units = count(config, "compute_units", 100'000);
        sourced(config, "peak_clock_GHz", {0.1, 100});
        group(config, "peak_TFLOPS", [&](ConfigObject& peaks) { read_peaks(peaks, device); });
        device.hbm_capacity = gigabytes(sourced(config, "hbm_capacity_GB", {0.1, 1e5}));
        device.hbm_peak = rate(config, "hbm_peak_GBps");
        device.hbm = rate(config, "hbm_GBps");
        device.last_level_cache = megabytes(sourced(config, "last_level_cache_MB", {0.1, 1e5}));
        device.board_power = Watts(sourced(config, "board_power_W", {1, 1e5}));
        choose(config, "near_memory", near_memory_names, device.near_memory);
        calibrated(config, "launch", [&](ConfigObject& launch) { read_launch(launch, device); });
        calibrated(config, "dma", [&](ConfigObject& dma) { read_dma(dma, device); });
        calibrated(config, "copy_kernel", [&](ConfigObject& kernel) { read_copy_kernel(kernel, device); });
        if (config.has("collective_library"))
            group(config, "collective_library",
                  [&](ConfigObject& library) { read_library(library, device); });
        calibrated(config, "interference", [&](ConfigObject& group) { read_interference(group, device); });
        if (config.has("variation"))
            calibrated(config, "variation", [&](ConfigObject& variation) {
                device.variation.gpu_speed = sourced(variation, "gpu_speed_spread", {0.0, 0.5});
            });
        if (config.has("energy"))
            calibrated(config, "energy", [&](ConfigObject& energy) { device.energy = read_energy(energy); });
        errors_.keep([&] { config.finish(); });
        errors_.throw_all(config.file());
        return device;
    }

private:
    static void overlay(ConfigObject& config, ConfigObject& calibration, const std::string& device) {
        calibration.integer("schema", 1, 1);
        if (const std::string of = calibration.text("device"); !device.empty() && of != device)
            calibration.fail("device", "is '" + of + "', expected '" + device + "'");
        for (const std::string key : {"gemm", "gemm_library", "gemm_libraries"})  // read_gemm_calibration
            if (calibration.has(key)) calibration.raw(key);
        if (calibration.has("measured_gemms")) calibration.object("measured_gemms");  // read_gemm_times
        config.overlay(std::move(calibration));
    }

    /// The value, or the least of `range` where it is missing or wrong.
    double sourced(ConfigObject& config, const std::string& key, Range range) {
        double value = range.low;
        errors_.keep([&] { value = config.sourced(key, range); });
        return value;
    }
    /// Keeps an error at a key that is there.
    void refuse(ConfigObject& config, const std::string& key, const std::string& message) {
        config.raw(key);
        errors_.keep([&] { config.fail(key, message); });
    }
    Seconds time(ConfigObject& config, const std::string& key) {
        return microseconds(sourced(config, key, sane_time_us));
    }
    BytesPerSecond rate(ConfigObject& config, const std::string& key) {
        return gigabytes_per_second(sourced(config, key, sane_rate_GBps));
    }
    int count(ConfigObject& config, const std::string& key, int high) {
        int value = 1;
        errors_.keep([&] {
            value = static_cast<int>(sourced_whole(config, key, {1, static_cast<double>(high)}));
        });
        return value;
    }

    /// A choice that may be left out.
    template <class Enum, class Names>
    void choose(ConfigObject& config, const std::string& key, const Names& names, Enum& value) {
        if (config.has(key))
            errors_.keep([&] { value = static_cast<Enum>(config.sourced_choice(key, names)); });
    }

    /// Calls `read` with an object of the file, and refuses what it does not ask for.
    template <class Read>
    void group(ConfigObject& config, const std::string& name, Read&& read) {
        errors_.keep([&] {
            ConfigObject object = config.object(name);
            read(object);
            object.finish();
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

    /// "bus_GBps_by_channels": {"1": {"value", "source"}, …}, counts below `all`; may be left out.
    std::map<int, BytesPerSecond> by_channels(ConfigObject& fit, double all) {
        std::map<int, BytesPerSecond> rates;
        if (!fit.has("bus_GBps_by_channels")) return rates;
        ConfigObject table = fit.object("bus_GBps_by_channels");
        for (const std::string& key : table.keys()) {
            int channels = 0;
            const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), channels);
            if (error == std::errc() && end == key.data() + key.size() && channels >= 1 && channels < all)
                rates[channels] = rate(table, key);
            else
                refuse(table, key,
                       "is no number of channels from 1 to " + std::to_string(std::llround(all) - 1));
        }
        table.finish();
        return rates;
    }

    void read_peaks(ConfigObject& peaks, DeviceSpec& device) {
        for (const std::string& key : peaks.keys()) {
            const auto named = std::find(dtype_names.begin(), dtype_names.end(), key);
            if (named == dtype_names.end()) {
                refuse(peaks, key, "is no data type" + suggestion(key, dtype_names));
                continue;
            }
            device.peak[static_cast<DType>(named - dtype_names.begin())] =
                teraflops(sourced(peaks, key, {0.01, 1e6}));
        }
    }

    void read_launch(ConfigObject& launch, DeviceSpec& device) {
        device.launch.kernel = time(launch, "kernel_us");
        device.launch.dependency = device.launch.remote_dependency = device.launch.flag =
            time(launch, "dependency_us");
        if (launch.has("remote_dependency_us"))
            device.launch.remote_dependency = time(launch, "remote_dependency_us");
        if (launch.has("event_us")) device.launch.event = time(launch, "event_us");
        if (launch.has("flag_us")) device.launch.flag = time(launch, "flag_us");
        choose(launch, "residency", residency_names, device.launch.residency);
    }

    void read_dma(ConfigObject& dma, DeviceSpec& device) {
        device.dma.peer_engines = count(dma, "peer_engines", 1024);
        choose(dma, "queues", dma_queues_names, device.dma.queues);
        choose(dma, "order", queue_order_names, device.dma.order);
        choose(dma, "pulls_served_by", pull_server_names, device.dma.pulls);
        device.dma.engine = rate(dma, "engine_GBps");
        device.dma.command = time(dma, "command_us");
        device.dma.schedule = time(dma, "schedule_us");
        device.dma.start = device.dma.pull_start = time(dma, "start_us");
        if (dma.has("pull_start_us")) device.dma.pull_start = time(dma, "pull_start_us");
        device.dma.pull_schedule = device.dma.schedule;
        if (dma.has("pull_schedule_us")) device.dma.pull_schedule = time(dma, "pull_schedule_us");
        if (dma.has("switch_us")) device.dma.switch_over = time(dma, "switch_us");
        if (dma.has("poll_us")) {
            device.dma.poll = microseconds(sourced(dma, "poll_us", {0.1, 1e6}));
            device.dma.first_poll = time(dma, "first_poll_us");
            device.dma.poll_apart = time(dma, "poll_apart_us");
            if (dma.has("pull_step_us")) device.dma.pull_step = time(dma, "pull_step_us");
            if (dma.has("event_queues")) device.dma.event_queues = count(dma, "event_queues", 1024);
        }
        if (dma.has("event_us")) device.dma.event = time(dma, "event_us");
        device.dma.completion = time(dma, "completion_us");
        if (dma.has("queued_launch_us")) device.dma.queued_launch = time(dma, "queued_launch_us");
        if (dma.has("completions_apart_us")) device.dma.completions_apart = time(dma, "completions_apart_us");
        if (dma.has("commands")) {
            ConfigObject commands = dma.object("commands");
            device.dma.commands = {time(commands, "release_us"), time(commands, "next_command_us"),
                                   time(commands, "next_start_us"), rate(commands, "broadcast_GBps")};
            commands.finish();
        }
        device.dma.ramp = Bytes(sourced(dma, "ramp_bytes", {0, 1e9}));
        device.dma.strided_run = Bytes(sourced(dma, "strided_run_bytes", {0, 1e9}));
    }

    void read_copy_kernel(ConfigObject& kernel, DeviceSpec& device) {
        device.copy_kernel.launch = time(kernel, "launch_us");
        device.copy_kernel.completion = time(kernel, "completion_us");
        device.copy_kernel.link_per_cu = rate(kernel, "link_GBps_per_cu");
        // What a unit streams: of copies, or apart for reads and writes.
        if (!kernel.has("cu_read_GBps")) device.stream.cu = rate(kernel, "cu_GBps");
        device.copy_kernel.remote_read = rate(kernel, "remote_read_GBps");
        device.copy_kernel.default_cus = count(kernel, "default_cus", 1024);
        if (kernel.has("queued_launch_us"))
            device.copy_kernel.queued_launch = time(kernel, "queued_launch_us");
        if (kernel.has("completions_apart_us"))
            device.copy_kernel.completions_apart = time(kernel, "completions_apart_us");
        if (kernel.has("pull_start_us")) device.copy_kernel.pull_start = time(kernel, "pull_start_us");
        const auto number = [&](const std::string& key, Range range, double& value) {
            if (kernel.has(key)) value = sourced(kernel, key, range);
        };
        number("units_per_block", {0.01, 1}, device.copy_kernel.units_per_block);
        if (kernel.has("blocks_per_unit"))
            device.copy_kernel.blocks_per_unit = count(kernel, "blocks_per_unit", 32);
        number("pull_rate_beside_gemms", {0.01, 1}, device.copy_kernel.pull_rate_beside_gemms);
        number("rate_beside_gemms", {0.01, 1}, device.copy_kernel.rate_beside_gemms);
        const auto loads = [&](const std::string& key, Bytes& value) {
            if (kernel.has(key)) value = Bytes(sourced(kernel, key, {0, 1e9}));
        };
        loads("cache_beside_gemms_bytes", device.copy_kernel.cache_beside_gemms);
        loads("cache_beside_large_tiles_bytes", device.copy_kernel.cache_beside_large_tiles);
        number("large_tile_elements", {1, 1e9}, device.copy_kernel.large_tile);
        loads("peer_loads_bytes", device.copy_kernel.peer_loads);
        loads("local_loads_bytes", device.copy_kernel.local_loads);
        number("saturation", {0.5, 100}, device.copy_kernel.saturation);
        number("link_overhead", {0, 1}, device.copy_kernel.link_overhead);
        number("pull_requests", {0, 1}, device.copy_kernel.pull_requests);
        number("push_acknowledgements", {0, 1}, device.copy_kernel.push_acknowledgements);
        device.stream.strided_run = device.dma.strided_run;
        if (kernel.has("strided_run_bytes"))
            device.stream.strided_run = Bytes(sourced(kernel, "strided_run_bytes", {0, 1e9}));
        if (kernel.has("stream_start_us")) device.stream.start = time(kernel, "stream_start_us");
        if (kernel.has("cu_read_GBps")) {
            device.stream.read = rate(kernel, "cu_read_GBps");
            device.stream.write = rate(kernel, "cu_write_GBps");
        }
        number("read_write_overlap", {1, 10}, device.stream.overlap);
        if (kernel.has("cu_reduce_GBps")) device.stream.reduce = rate(kernel, "cu_reduce_GBps");
        if (kernel.has("cache_GBps")) device.stream.cache = rate(kernel, "cache_GBps");
        number("cached_load_gain", {1, 100}, device.stream.cached_loads);
    }

    void read_library(ConfigObject& library, DeviceSpec& device) {
        errors_.keep([&] { library.text("name"); });
        device.collective_library.channels = count(library, "channels", 1024);
        choose(library, "residency", residency_names, device.collective_library.residency);
        choose(library, "pattern", collective_pattern_names, device.collective_library.pattern);
        for (std::size_t kind = 0; kind < collective_names.size(); ++kind) {
            if (!library.has(collective_names[kind])) continue;
            ConfigObject fit = library.object(collective_names[kind]);
            const auto line = [&](ConfigObject& from, double channels) {
                return DeviceSpec::Library::Line{time(from, "latency_us"), rate(from, "bus_GBps"),
                                                 by_channels(from, channels)};
            };
            auto& read = device.collective_library.collectives[static_cast<CollectiveKind>(kind)] = {
                line(fit, device.collective_library.channels), {}};
            if (fit.has("small")) {
                ConfigObject small = fit.object("small");
                read.small = line(small, device.collective_library.channels);
                small.finish();
            }
            fit.finish();
        }
    }

    void read_interference(ConfigObject& interference, DeviceSpec& device) {
        const Range loss{0.0, 0.95};
        device.interference.compute_lost_to_dma = sourced(interference, "compute_lost_to_dma", loss);
        device.interference.compute_lost_to_copy_kernels =
            sourced(interference, "compute_lost_to_copy_kernels", loss);
        device.interference.dma_lost_to_compute = sourced(interference, "dma_lost_to_compute", loss);
        const auto optional_loss = [&](const std::string& key, double& value) {
            if (interference.has(key)) value = sourced(interference, key, loss);
        };
        optional_loss("gemm_slowed_beside_dma", device.interference.gemm_slowed_beside_dma);
        optional_loss("gemm_slowed_beside_copy_kernels", device.interference.gemm_slowed_beside_copy_kernels);
        if (interference.has("weights")) {
            ConfigObject weights = interference.object("weights");
            for (const std::string& resource : weights.keys()) {
                if (std::find(weighted_resources.begin(), weighted_resources.end(), resource) ==
                    weighted_resources.end()) {
                    refuse(weights, resource,
                           "is no resource that has weights" + suggestion(resource, weighted_resources));
                    continue;
                }
                ConfigObject given = weights.object(resource);
                auto& by_class = device.interference.weights[resource];
                by_class.fill(1.0);
                for (std::size_t kind = 0; kind < task_class_names.size(); ++kind)
                    if (given.has(task_class_names[kind]))
                        by_class[kind] = sourced(given, task_class_names[kind], {1e-3, 1e3});
                given.finish();
            }
        }
    }

    DeviceSpec::Energy read_energy(ConfigObject& group) {
        const auto power = [&](const std::string& key) { return Watts(sourced(group, key, {0, 1e4})); };
        const auto picojoules = [&](const std::string& key) { return 1e-12 * sourced(group, key, {0, 1e5}); };
        DeviceSpec::Energy energy;
        energy.idle = power("idle_W");
        energy.active = power("active_W");
        for (std::size_t dtype = 0; dtype < dtype_names.size(); ++dtype)
            if (const std::string key = dtype_names[dtype] + "_pJ_per_flop"; group.has(key))
                energy.gemm[static_cast<DType>(dtype)] = JoulesPerFlop(picojoules(key));
        energy.hbm = JoulesPerByte(picojoules("hbm_pJ_per_byte"));
        energy.link = JoulesPerByte(picojoules("link_pJ_per_byte"));
        energy.copy_kernel = JoulesPerByte(picojoules("copy_kernel_pJ_per_byte"));
        return energy;
    }

    KeptErrors errors_;
};

}  // namespace

DeviceSpec read_device(const std::filesystem::path& path) {
    const ConfigFile file = read_config_file(path);
    return DeviceReader().read(file.view(), nullptr);
}

DeviceSpec read_device(const std::filesystem::path& path, ConfigObject calibration) {
    const ConfigFile file = read_config_file(path);
    return DeviceReader().read(file.view(), &calibration);
}

DeviceSpec read_device(const ConfigFile& device, const ConfigFile* calibration) {
    if (calibration == nullptr) return DeviceReader().read(device.view(), nullptr);
    ConfigObject fitted = calibration->view();
    return DeviceReader().read(device.view(), &fitted);
}

}  // namespace overlap
