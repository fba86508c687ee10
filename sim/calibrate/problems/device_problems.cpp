#include "sim/calibrate/problems/device_problems.hpp"

#include <algorithm>

#include "sim/calibrate/problems/problems.hpp"
#include "sim/topology/device_copy_kernel.hpp"

namespace overlap {
namespace {

namespace fs = std::filesystem;

/// Makes the machines of a device with given parameter values.
class MachineMaker {
public:
    MachineMaker(const DeviceFiles& files, const Calibration& gemms) : files_(files), gemms_(gemms) {}

    Machines operator()(const DeviceValues& values) const {
        const Json trial = trial_calibration(gemms_.device, values);
        Json device = files_.device;
        drop_known(device, trial);
        const ConfigFile calibration{trial, "trial"};
        const DeviceSpec spec = read_device({device, gemms_.device}, &calibration);
        Machines machines;
        for (const auto& [name, json] : files_.topologies) {
            const Topology topology({json, name}, spec);
            machines.emplace(topology.gpus(), Machine{topology, ResourceTable(topology), gemms_, {}});
        }
        return machines;
    }

private:
    const DeviceFiles& files_;
    const Calibration& gemms_;
};

/// The value of "group/key/…" in a device file; null where there is none.
const Json* value_of(const Json& device, const std::string& name) {
    const Json::json_pointer place("/" + name);
    if (!device.contains(place) || !device[place].is_object() || !device[place].contains("value"))
        return nullptr;
    return &device[place]["value"];
}

/// Starts from the device's values. Where a fit has keys of a group that the device lacks, the device works otherwise.
void start_from(const Json& device, std::vector<DeviceParameter>& parameters) {
    std::erase_if(parameters, [&](const DeviceParameter& parameter) {
        return parameter.optional && value_of(device, parameter.name()) == nullptr;
    });
    for (DeviceParameter& parameter : parameters) {
        const Json* known = value_of(device, parameter.name());
        if (known == nullptr || !known->is_number() || known->get<double>() <= parameter.range.low) continue;
        parameter.start = *known;
        parameter.reason = "estimate: the value of the device that this one started from";
    }
}

}  // namespace

void drop_excluded(Json& group, const Json& known) {
    for (const Field<DeviceStream>& field : DeviceStream::fields())
        if (!field.without.empty() && known.contains(field.without)) group.erase(std::string(field.key));
}

void drop_known(Json& device, const Json& known) {
    for (const auto& [key, value] : known.items()) {
        if (!device.contains(key) || !value.is_object()) continue;
        if (value.contains("value"))
            device.erase(key);
        else
            drop_known(device[key], value);
    }
    drop_excluded(device, known);
}

DeviceFiles device_files(const ConfigFolder& configs, const std::string& device) {
    const fs::path path = configs.find("devices", device);
    DeviceFiles files{read_config_file(path, "device").json, {}};
    for (const std::string& name : configs.names("topologies")) {
        Json json = configs.topology_file(name).json;
        if (json.contains("device") && json["device"] == path.filename().string())
            files.topologies[name] = std::move(json);
    }
    return files;
}

std::vector<DeviceProblem> device_problems(const fs::path& folder, const std::string& shown,
                                           const HeldOut& held_out) {
    std::vector<DeviceProblem> problems;
    const auto has = [&](const std::string& file) { return fs::exists(folder / file); };
    const bool peers = has("two_gpus.jsonl"), local = has("local.jsonl");
    if (peers) problems.push_back(dma_copies(folder, shown, held_out));
    if (peers) problems.push_back(kernel_copies(folder, shown, held_out));
    if (local) problems.push_back(local_kernels(folder, shown, held_out));
    if (local && has("beside.jsonl")) problems.push_back(interference_factors(folder, shown));
    if (const std::vector<fs::path> energy = energy_files(folder); !energy.empty()) {
        const fs::path from_folder = energy.front().parent_path().lexically_relative(folder);
        problems.push_back(
            energy_of_work(energy, (fs::path(shown) / from_folder).lexically_normal().generic_string()));
    }
    // Last: all other rows hold times of one GPU.
    if (has("parts_1.jsonl")) problems.push_back(gpu_speeds(folder, shown));
    std::erase_if(problems, [](const DeviceProblem& problem) {
        return std::none_of(problem.rows.begin(), problem.rows.end(),
                            [](const DeviceRow& row) { return row.weight > 0; });
    });
    return problems;
}

std::vector<DeviceCalibration> calibrate_device(const Calibration& gemms, const fs::path& folder,
                                                const std::string& shown, const DeviceFiles& files,
                                                const HeldOut& held_out,
                                                const std::function<void()>& fitted) {
    std::vector<DeviceProblem> problems = device_problems(folder, shown, held_out);
    if (problems.empty()) return {};
    if (files.has_priors)
        for (DeviceProblem& problem : problems) start_from(files.device, problem.parameters);
    DeviceValues known;
    for (const DeviceProblem& problem : problems)
        for (const DeviceParameter& parameter : problem.parameters)
            if (!parameter.of_several_gpus) known[parameter.name()] = parameter.start;
    const MachineMaker machines(files, gemms);
    std::vector<DeviceCalibration> result;
    for (DeviceProblem& problem : problems) {
        result.push_back(calibrate(std::move(problem), [&](const DeviceValues& values) {
            DeviceValues all = values;
            all.insert(known.begin(), known.end());
            return machines(all);
        }));
        for (const auto& [name, value] : result.back().values()) known[name] = value;
        if (fitted) fitted();
    }
    return result;
}

std::vector<DeviceCalibration> calibrate_from_overlap_tables(const Calibration& gemms, const fs::path& data,
                                                             const DeviceFiles& files) {
    if (!has_library_tables(data, gemms.device)) return {};
    return {calibrate(library_beside_gemms(data, gemms.device), MachineMaker(files, gemms))};
}

Json device_groups(const std::vector<DeviceCalibration>& calibrations) {
    Json groups = Json::object();
    for (const DeviceCalibration& calibration : calibrations) add_to_groups(calibration, groups);
    return groups;
}

}  // namespace overlap
