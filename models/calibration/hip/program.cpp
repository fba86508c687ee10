// Facts of the machine, a watchdog, and the code around `main`.

#include "models/calibration/hip/program.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <iostream>

#include "models/calibration/hip/case_list.hpp"
#include "models/calibration/hip/gemm.hpp"
#include "models/calibration/hip/telemetry.hpp"
#include "models/calibration/hip/wiring.hpp"

namespace overlap::hip {
namespace {

char running[256] = "";
void on_alarm(int) {
    const char text[] = "\nno end within 60 s: ";
    static_cast<void>(!write(2, text, sizeof text - 1));
    static_cast<void>(!write(2, running, std::strlen(running)));
    static_cast<void>(!write(2, "\n", 1));
    _exit(1);
}

int positive(const std::string& name, const std::string& text) {
    const int value = std::atoi(text.c_str());
    if (value < 1 || std::to_string(value) != text)
        throw UserError(name + " " + text + ": allowed: 1, 2, 3, …");
    return value;
}

}  // namespace

std::string now() {
    const std::time_t time = std::time(nullptr);
    char text[32];
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&time));
    return text;
}

JsonLine machine_facts(const Machine& machine, const std::string& command) {
    hipDeviceProp_t properties;
    check(hipGetDeviceProperties(&properties, 0));
    int driver = 0, runtime = 0, clock_kHz = 0, memory_kHz = 0, cache = 0;
    check(hipDriverGetVersion(&driver));
    check(hipRuntimeGetVersion(&runtime));
    check(hipDeviceGetAttribute(&clock_kHz, hipDeviceAttributeClockRate, 0));
    check(hipDeviceGetAttribute(&memory_kHz, hipDeviceAttributeMemoryClockRate, 0));
    check(hipDeviceGetAttribute(&cache, hipDeviceAttributeL2CacheSize, 0));
    std::vector<std::vector<double>> peers(machine.gpus(), std::vector<double>(machine.gpus())),
        ranks = peers;
    std::vector<double> limits, units, engines, fast_links;
    std::vector<std::string> names, architectures, uuids, addresses, links;
    bool counts_energy = true;
    for (int gpu = 0; gpu < machine.gpus(); ++gpu) {
        const auto telemetry = make_telemetry(gpu);
        limits.push_back(telemetry->power_limit_W());
        counts_energy = counts_energy && !std::isnan(telemetry->energy_J());
        hipDeviceProp_t of_gpu;
        check(hipGetDeviceProperties(&of_gpu, gpu));
        names.push_back(of_gpu.name);
        units.push_back(machine.compute_units(gpu));
        const Attachment place = attachment(gpu);
        architectures.push_back(place.architecture);
        uuids.push_back(place.uuid);
        addresses.push_back(place.pci_address);
        engines.push_back(place.copy_engines);
        fast_links.push_back(place.fast_links);
        std::string row;
        for (int peer = 0; peer < machine.gpus(); ++peer) {
            int reachable = 0;
            if (peer != gpu) check(hipDeviceCanAccessPeer(&reachable, gpu, peer));
            peers[gpu][peer] = reachable;
            ranks[gpu][peer] = peer == gpu ? 0 : performance_rank(gpu, peer);
            row += (peer ? " " : "") + (peer == gpu ? "self" : link_kind(gpu, peer));
        }
        links.push_back(row);
    }
    const char* connections = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
    return JsonLine()
        .add("schema", 1)
        .add("kind", "machine")
        .add("date", now())
        .add("command", command)
        .add("device", properties.name)
        .add("gpus", machine.gpus())
        .add("compute_units", machine.compute_units(0))
        .add("memory_GiB", static_cast<double>(properties.totalGlobalMem) / (1 << 30))
        .add("cache_MiB", cache / 1048576.0)
        .add("peak_clock_MHz", clock_kHz / 1e3)
        .add("memory_clock_MHz", memory_kHz / 1e3)
        .add("power_limits_W", limits)
        .add("platform", on_nvidia ? "nvidia" : "amd")
        .add("driver", driver_version())
        .add("driver_api", driver)
        .add("runtime", runtime)
        .add("gemm_library", gemm_library())
        .add("peer_access", peers)
        .add("devices", names)
        .add("units_by_gpu", units)
        .add("architectures", architectures)
        .add("uuids", uuids)
        .add("pci_addresses", addresses)
        .add("copy_engines", engines)
        .add("fast_links", fast_links)
        .add("links", links)
        .add("performance_rank", ranks)
        .add("energy_counter", counts_energy ? 1 : 0)
        .add("max_connections", connections ? connections : "");
}

ResultsFile::ResultsFile(const std::string& path) : path_(path), part_(path + ".part") {
    if (path_.empty()) return;
    file_.open(part_);
    if (!file_) throw UserError(part_ + ": cannot be written");
}

void ResultsFile::write(const std::string& line) {
    (path_.empty() ? std::cout : file_) << line << std::endl;
}

void ResultsFile::finish() {
    if (path_.empty()) return;
    file_.close();
    if (!file_) throw std::runtime_error(part_ + ": cannot be written");
    std::filesystem::rename(part_, path_);
}

void ResultsFile::discard() {
    if (!path_.empty()) std::filesystem::remove(part_);
}

void read_arguments(const std::vector<std::string>& given, const std::string& usage,
                    std::span<const Flag> flags, std::string& file) {
    for (std::size_t i = 0; i < given.size(); ++i) {
        const auto flag =
            std::find_if(flags.begin(), flags.end(), [&](const Flag& one) { return one.name == given[i]; });
        if (flag == flags.end()) {
            if (given[i].starts_with("-") || !file.empty())
                throw UserError("unknown argument " + given[i] + "; " + usage);
            file = given[i];
        } else if (bool* const* truth = std::get_if<bool*>(&flag->sets)) {
            **truth = true;
        } else {
            if (i + 1 == given.size()) throw UserError(given[i] + " needs a value; " + usage);
            const std::string& value = given[++i];
            if (std::string* const* text = std::get_if<std::string*>(&flag->sets))
                **text = value;
            else
                *std::get<int*>(flag->sets) = positive(flag->name, value);
        }
    }
}

Watch::Watch(const std::string& what) {
    std::strncpy(running, what.c_str(), sizeof running - 1);
    std::signal(SIGALRM, on_alarm);
    alarm(60);
}

Watch::~Watch() {
    alarm(0);
}

int run_program(const std::string& name, int count, char** values,
                const std::function<int(const std::vector<std::string>&, const std::string&)>& run) {
    // Set both before the first CUDA call. CUDA loads a kernel at its first launch and then waits for
    // the GPU: behind a closed gate, for ever. Streams must not share a hardware queue, or one would
    // wait for another's gate.
    setenv("CUDA_MODULE_LOADING", "EAGER", 1);
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    std::string command;
    for (int i = 0; i < count; ++i) command += (i ? " " : "") + std::string(values[i]);
    try {
        return run({values + 1, values + count}, command);
    } catch (const NoGpu& error) {
        std::cerr << error.what() << "\n";
        return 2;
    } catch (const UserError& error) {
        std::cerr << error.what() << "\n";
        return 2;
    } catch (const std::exception& error) {
        std::cerr << name << ": " << error.what() << "\n";
        return 1;
    }
}

}  // namespace overlap::hip
