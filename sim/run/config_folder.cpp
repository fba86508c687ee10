#include "sim/run/config_folder.hpp"

#include <glob.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <tuple>

#include "models/calibration_schema.hpp"
#include "models/gemm_libraries.hpp"
#include "sim/confidence/accuracy.hpp"
#include "sim/confidence/measured_on.hpp"
#include "sim/core/installation.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/schedules/schedule.hpp"
#include "sim/topology/like_device.hpp"

namespace overlap {

namespace fs = std::filesystem;

namespace {

Calibration calibration_from(const ConfigFile& file, const std::string& device) {
    Calibration calibration{device, read_gemm_calibration(file), read_gemm_times(file)};
    calibration.kernels = read_kernel_calibration(file);
    for (const auto& [dtype, parameters] : calibration.gemm)
        if (auto library = library_of_gemms(file, dtype)) calibration.libraries[dtype] = *std::move(library);
    return calibration;
}

/// The files of the GPU that the calibration was measured on: those of `built`, but the shipped device where a device
/// of its name is priced by the shipped calibration.
GpuFiles as_measured(const MachineFiles& built, const fs::path& root) {
    const GpuFiles own{built.device.json, built.calibration->json};
    const std::string name = own.device.value("name", "") + ".json";
    const fs::path device = root / "devices" / name, calibration = root / "calibrations" / name;
    std::error_code ignored;
    if (fs::equivalent(device, built.device.name, ignored) || !fs::exists(device, ignored) ||
        !fs::exists(calibration, ignored) ||
        read_config_file(calibration, "calibration").json != own.calibration)
        return own;
    return {read_config_file(device, "device").json, own.calibration};
}

}  // namespace

ConfigFolder ConfigFolder::standard() {
    const char* given = std::getenv("OVERLAP_CONFIGS");
    if (given != nullptr && *given != '\0') return ConfigFolder(given);
    static constexpr std::array<std::string_view, 2> places{"share/overlap/configs/topologies",
                                                            "configs/topologies"};
    if (const auto topologies = find_beside_program(places)) return ConfigFolder(topologies->parent_path());
    std::error_code ignored;
    for (const char* folder : {OVERLAP_SOURCE_CONFIGS, OVERLAP_INSTALLED_CONFIGS})
        if (fs::is_directory(folder, ignored)) return ConfigFolder(folder);
    throw UserError("the configs (share/overlap/configs of an installation) are not beside the program " +
                    own_file().string() + "; OVERLAP_CONFIGS can name their folder");
}

ConfigFolder ConfigFolder::with_files_in(fs::path folder) const {
    ConfigFolder result(*this);
    result.beside_ = std::move(folder);
    return result;
}

fs::path ConfigFolder::file_beside(const std::string& name) const {
    std::error_code ignored;
    if (!beside_.empty())
        for (const std::string& candidate : {name, name + ".json"})
            if (fs::is_regular_file(beside_ / candidate, ignored)) return beside_ / candidate;
    return {};
}

std::vector<std::string> ConfigFolder::files_beside(const std::string& pattern) const {
    glob_t found{};
    std::vector<std::string> files;
    if (::glob(path_beside(pattern).c_str(), 0, nullptr, &found) == 0)
        files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
    globfree(&found);
    std::ranges::sort(files, [](const std::string& a, const std::string& b) {
        return strverscmp(a.c_str(), b.c_str()) < 0;
    });
    return files;
}

fs::path ConfigFolder::find(const std::string& kind, const std::string& name) const {
    std::error_code ignored;
    if (name.empty()) throw UserError("a name of " + kind + " is empty" + suggestion(name, names(kind)));
    const bool is_folder = fs::is_directory(name, ignored);
    if (fs::exists(name, ignored) && !is_folder) return name;
    if (const fs::path beside = file_beside(name); !beside.empty()) return beside;
    if (name.find('/') != std::string::npos && !is_folder) throw UserError(one_line(name) + ": no such file");
    for (const std::string& candidate : {name, name + ".json"})
        if (fs::is_regular_file(root_ / kind / candidate, ignored)) return root_ / kind / candidate;
    if (is_folder) return name;  // its reader says what is wrong
    const std::string stem = name.ends_with(".json") ? name.substr(0, name.size() - 5) : name;
    throw UserError(one_line(name) + ": no such file here or in " + (root_ / kind).string() +
                    suggestion(stem, names(kind)));
}

std::vector<std::string> ConfigFolder::names(const std::string& kind) const {
    std::vector<std::string> result;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(root_ / kind, error))
        if (entry.path().extension() == ".json") result.push_back(entry.path().stem().string());
    if (error) throw UserError((root_ / kind).string() + ": cannot be read: " + error.message());
    if (kind == "topologies") append(result, clusters().names());
    std::ranges::sort(result);
    return result;
}

Clusters ConfigFolder::clusters() const {
    const fs::path file = root_ / "clusters.json";
    static const Json none{
        {"schema", 1}, {"description", ""}, {"nics", Json::array()}, {"clusters", Json::array()}};
    std::error_code ignored;
    return {{fs::exists(file, ignored) ? read_json_file(file) : none, file.string()},
            [*this](const std::string& node) { return read_json_file(find("topologies", node)); }};
}

ConfigFile ConfigFolder::topology_file(const std::string& name) const {
    std::error_code ignored;
    const std::string stem = name.ends_with(".json") ? name.substr(0, name.size() - 5) : name;
    const bool is_file = fs::exists(name, ignored) || !file_beside(name).empty() ||
                         fs::exists(root_ / "topologies" / (stem + ".json"), ignored);
    if (!is_file)
        if (std::optional<Json> cluster = clusters().topology(stem))
            return {*std::move(cluster), (root_ / "clusters.json").string() + " (" + stem + ")"};
    return read_config_file(find("topologies", name), "topology");
}

Json ConfigFolder::largest_machine(const std::string& device) const {
    Json largest;
    for (const std::string& name : names("topologies")) {
        if (!name.starts_with(device + "_")) continue;  // a machine that is only imagined, such as mesh_64
        const Json json = topology_file(name).json;
        const auto gpus = [](const Json& one) { return one.value("gpus_per_node", 0); };
        if (json.value("device", "") == device + ".json" && json.value("nodes", 0) == 1 &&
            (largest.is_null() || gpus(json) > gpus(largest)))
            largest = json;
    }
    return largest;
}

std::string ConfigFolder::topology_of(const std::string& device) const {
    const fs::path file = find("devices", device);
    const std::string stem = file.stem().string();
    std::error_code ignored;
    std::vector<fs::path> folders{root_ / "topologies"};
    if (!fs::equivalent(file, root_ / "devices" / (stem + ".json"), ignored))
        folders = {file.parent_path().empty() ? "." : file.parent_path(),
                   file.parent_path() / "../topologies"};
    std::string found;
    std::tuple<bool, bool, int> best;
    for (const fs::path& folder : folders)
        for (const auto& entry : fs::directory_iterator(folder, ignored)) {
            if (entry.path().extension() != ".json") continue;
            const Json json = read_json_file(entry.path());
            if (!json.is_object() || !json.contains("fabric") ||
                fs::path(json.value("device", "")).stem() != stem)
                continue;
            const std::string name = entry.path().stem().string();
            const int nodes = json.value("nodes", 0), gpus = nodes * json.value("gpus_per_node", 0);
            const std::tuple rank(name == stem + "_8", nodes == 1, gpus);
            const std::string shown = folders.size() == 1 ? name : entry.path().lexically_normal().string();
            if (!found.empty() && std::tie(rank, found) <= std::tie(best, shown)) continue;
            found = shown;
            best = rank;
        }
    if (found.empty())
        throw UserError(file.string() + ": no topology has this device; name one with --topology");
    return found;
}

std::vector<std::string> ConfigFolder::published_systems() const {
    std::vector<std::string> systems;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(experiments(), error))
        if (entry.is_directory()) systems.push_back(entry.path().filename().string());
    if (error) throw UserError(experiments().string() + ": cannot be read: " + error.message());
    std::ranges::sort(systems);
    return systems;
}

SchedulePtr ConfigFolder::schedule(const std::string& name) const {
    for (const ScheduleEntry& entry : schedules())
        if (entry.name == name) return {SchedulePtr(), &entry};  // it outlives everything
    std::error_code ignored;
    const std::vector<std::string> presets = names("schedules");
    const std::string stem = name.ends_with(".json") ? name.substr(0, name.size() - 5) : name;
    if (name.find('/') == std::string::npos && !fs::exists(name, ignored) && file_beside(name).empty() &&
        !contains(presets, stem))
        find_schedule(name, presets);  // throws
    return std::make_shared<const ScheduleEntry>(
        read_preset(read_config_file(find("schedules", name), "schedule")));
}

MachineFiles ConfigFolder::machine_files(const std::string& topology, const WhatIf& what_if) const {
    return read_machine_files(topology_file(topology), root_ / "devices", root_ / "calibrations", what_if,
                              calibration_schema);
}

Host ConfigFolder::host(const std::string& name) const {
    // Older folders have none; these two change nothing but who enqueues.
    std::error_code unread;
    if ((name == default_host || name == recorded_host) &&
        !std::filesystem::exists(root_ / "hosts" / (name + ".json"), unread)) {
        const std::size_t threads = name == recorded_host ? 1 : 0;
        return read_host(
            {{{"name", name}, {"description", "built in"}, {"threads", host_threads_names[threads]}}, name});
    }
    return read_host(read_config_file(find("hosts", name), "host"));
}

Topology ConfigFolder::topology(const std::string& name) const {
    return read_topology(machine_files(name));
}

Machine ConfigFolder::machine(const std::string& name, const WhatIf& what_if) const {
    const MachineFiles files = machine_files(name, what_if);
    Topology topology = read_topology(files);
    ResourceTable resources(topology);
    Calibration calibration = calibration_from(*files.calibration, topology.device().name);
    if (files.fitted && !calibration.gemm_times.empty())
        calibration.measured_gemm = read_gemm_calibration(*files.fitted);
    MachineEvidence evidence = evidence_of(files.device.json, files.calibration->json);
    claim_what_was_measured(evidence, files.topology.json, {files.device.json, files.calibration->json},
                            as_measured(what_if.changes().empty() ? files : machine_files(name), root_));
    evidence.accuracy = read_accuracy(root_);
    return {std::move(topology), std::move(resources), std::move(calibration), Seconds(),
            std::make_shared<const MachineEvidence>(std::move(evidence))};
}

ConfigFile ConfigFolder::calibration_file(const std::string& device) const {
    return calibration_of(read_config_file(find("devices", device), "device"), root_ / "devices",
                          root_ / "calibrations");
}

DeviceSpec ConfigFolder::device(const std::string& name) const {
    const ConfigFile calibrated = calibration_file(name);
    return read_device(read_config_file(find("devices", name), "device"), &calibrated);
}

Calibration ConfigFolder::calibration(const std::string& device) const {
    return calibration_from(calibration_file(device), device);
}

}  // namespace overlap
