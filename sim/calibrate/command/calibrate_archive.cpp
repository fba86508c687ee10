#include "sim/calibrate/command/calibrate_archive.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "models/gemm_libraries.hpp"
#include "models/gemm_times.hpp"
#include "sim/calibrate/command/archive_validation.hpp"
#include "sim/calibrate/command/calibration_report.hpp"
#include "sim/calibrate/command/measured_archive.hpp"
#include "sim/calibrate/fits/gemm_calibration.hpp"
#include "sim/calibrate/measurements/gemm_times_json.hpp"
#include "sim/calibrate/measurements/measured_machine.hpp"
#include "sim/calibrate/problems/device_problems.hpp"
#include "sim/commands/commands.hpp"
#include "sim/commands/progress_reporter.hpp"
#include "sim/core/file_version.hpp"
#include "sim/core/output_file.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/core/temporary_folder.hpp"
#include "sim/topology/like_device.hpp"
#include "sim/topology/new_device.hpp"

namespace overlap {
namespace {

namespace fs = std::filesystem;

/// What is fitted, and the files that it is laid over.
struct Target {
    std::string name, like;  ///< `like`: the nearest device that we have measured
    bool is_new = true, writes_topology = true;
    Json device, calibration, topology;
    DeviceFiles files;  ///< for the fits: a device with all keys, and machines of several GPUs
    std::vector<std::string> notes;
};

/// Drops the values of `device` that `calibration` has, too.
void drop_fitted(Json& device, const Json& calibration) {
    for (const std::string& group : calibrated_groups)
        if (calibration.contains(group) && device.contains(group))
            drop_known(device[group], calibration[group]);
}

/// What the machine's driver and single measurements say.
DataSheet sheet_of(const MeasuredMachine& machine, const std::string& name, const fs::path& folder,
                   const std::string& shown) {
    DataSheet sheet;
    sheet.name = name;
    sheet.gpus = machine.gpus;
    sheet.known_from = "measured as " + machine.device + " on " + machine.date;
    for (const auto& [key, value] : machine.values) {
        sheet.values[key] = six_digits(value);
        sheet.sources[key] = "measured: " + shown + ", what the driver says";
    }
    for (const auto& [key, derived] : values_of_cases(folder)) {
        sheet.values[key] = six_digits(derived.value);
        sheet.sources[key] = "measured: " + shown + "/" + derived.from;
    }
    return sheet;
}

/// Machines of two and more GPUs of a topology with one node.
std::map<std::string, Json> parts_of(const Json& topology) {
    std::map<std::string, Json> parts;
    for (int gpus = 2; gpus <= topology.at("gpus_per_node").get<int>(); ++gpus) {
        const Json links = links_among_first(topology.at("fabric").front(), gpus);
        if (links.is_null()) continue;
        Json& part = parts[std::to_string(gpus)] = topology;
        part["gpus_per_node"] = gpus;
        part["fabric"] = Json::array({links});
    }
    return parts;
}

/// Whether one of `topologies` is a node of as many GPUs as `part`.
bool has_node_of(const std::map<std::string, Json>& topologies, const Json& part) {
    return std::ranges::any_of(topologies, [&](const auto& known) {
        return known.second.at("nodes") == 1 && known.second.at("gpus_per_node") == part.at("gpus_per_node");
    });
}

Target target_of(const MeasuredMachine& machine, std::string name, const fs::path& folder,
                 const std::string& shown) {
    const ConfigFolder shipped = ConfigFolder::standard();
    const auto read = [&](const std::string& kind, const std::string& file) {
        return read_config_file(shipped.find(kind + "s", file), kind).json;
    };
    Target target;
    target.like = nearest_device(machine.values, machine.platform, shipped.folder("devices"),
                                 shipped.folder("calibrations"), true);
    if (name.empty()) name = shipped_device(machine, shown, "--name");
    require_file_name(name, "command line: --name");
    target.is_new = !contains(shipped.names("calibrations"), name);
    target.name = name;
    DataSheet sheet = sheet_of(machine, name, folder, shown);
    const auto links = measured_links(folder, shown, machine.gpus, machine.fast_links);
    if (links) {
        sheet.fabric = links->group;
        sheet.gpus = links->gpus;
        target.notes = links->notes;
    }
    const NewMachine made =
        new_machine(sheet, {target.like, read("device", target.like), read("calibration", target.like),
                            shipped.largest_machine(target.like)});
    target.device = made.device;
    target.topology = made.topology;
    target.calibration = {{"schema", newest_version("calibration")}, {"device", name}};
    if (!target.is_new) {
        // Its own values, and what it lacks from the device that is like it.
        target.device = read("device", name);
        target.calibration = read("calibration", name);
        drop_excluded(target.device["copy_kernel"], made.device["copy_kernel"]);
        add_missing(target.device, made.device);
        target.device["launch"].update(made.device["launch"]);
        drop_fitted(target.device, target.calibration);
    }
    target.files = device_files(shipped, target.is_new ? target.like : name);
    target.files.device = target.device;
    target.files.has_priors = true;
    if (links) {
        if (target.is_new) target.files.topologies.clear();
        for (const auto& [gpus, part] : parts_of(target.topology))
            if (!has_node_of(target.files.topologies, part)) target.files.topologies[gpus] = part;
    }
    target.writes_topology =
        target.is_new || (links && target.files.topologies.contains(std::to_string(links->gpus)));
    for (const std::string& group : calibrated_groups)
        if (target.calibration.contains(group))
            add_missing(target.files.device[group], target.calibration[group]);
    return target;
}

/// Members of `from` into `to`; groups are joined, values replaced.
void lay_over(Json& to, const Json& from) {
    for (const auto& [key, value] : from.items()) {
        if (to.contains(key) && to[key].is_object() && value.is_object() && !value.contains("value"))
            lay_over(to[key], value);
        else
            to[key] = value;
    }
}

void write(const fs::path& file, const std::string& text) {
    make_folder(file.parent_path());
    write_file_atomically(file, text);
}

/// The schedules of the archive by the machine as it was fitted.
std::optional<Comparison> compare_schedules(const Target& target, const fs::path& folder) {
    const TemporaryFolder tree;
    const std::string file = target.name + ".json";
    write(tree.path() / "devices" / file, target.device.dump());
    write(tree.path() / "calibrations" / file, target.calibration.dump());
    for (const auto& [name, topology] : target.files.topologies)
        if (topology.at("nodes") == 1) {
            Json own = topology;
            own["name"] = target.name + "_" + std::to_string(topology.at("gpus_per_node").get<int>());
            own["device"] = file;
            write(tree.path() / "topologies" / (own["name"].get<std::string>() + ".json"), own.dump());
        }
    return compare_replays(folder, tree.path() / "topologies", target.name);
}

}  // namespace

std::string calibrate_archive(const fs::path& archive, std::string name, const fs::path& out) {
    const MeasuredArchive opened(archive);
    const fs::path& folder = opened.folder();
    const MeasuredMachine machine = read_measured_machine(folder);
    const std::string shown = (archive / "").lexically_normal().parent_path().filename().string();
    Target target = target_of(machine, std::move(name), folder, shown);
    const HeldOut held_out = [&](const Json& row) { return machine.holds_out(row); };

    // A full device file: fits need every key, and replace those that they fit.
    const DeviceSpec spec = read_device({target.files.device, target.name}, nullptr);
    const MeasurementFile gemm_file = read_measurements(folder / "gemm.jsonl");
    std::vector<MeasuredGemmRecipe> recipes = read_gemm_recipes(ConfigFolder::standard().recipes())
                                                  .of_machine(spec, machine.device, machine.platform);
    std::erase_if(recipes, [&](const MeasuredGemmRecipe& recipe) {
        return measured_gemms(gemm_file, recipe.dtype).empty();
    });
    ProgressReporter progress("fits of " + target.name,
                              recipes.size() + device_problems(folder, shown, held_out).size());
    const auto fitted = progress.counter();
    const auto gemms = calibrate_measured(recipes, folder, machine.unseen_gemms, fitted);
    const Json fitted_gemms = measured_gemm_json(gemms, shown);
    for (const auto& [dtype, group] : fitted_gemms.items()) target.calibration["gemm"][dtype] = group;
    target.calibration["measured_gemms"] = gemm_times_json(folder, shown);
    const ConfigFile so_far{target.calibration, target.name};
    const Calibration gemm_models{target.name, read_gemm_calibration(so_far), read_gemm_times(so_far)};
    const auto others = calibrate_device(gemm_models, folder, shown, target.files, held_out, fitted);
    lay_over(target.calibration, device_groups(others));
    drop_fitted(target.device, target.calibration);
    const ConfigFile calibration{target.calibration, target.name};
    read_device({target.device, target.name}, &calibration);  // fails before anything is written

    ArchiveValidation validation = validate_fits(target.name, shown, machine, gemms, others);
    validation.schedules = compare_schedules(target, folder);
    target.calibration["validation"] = to_json(validation);
    if (target.is_new)
        target.calibration["measured_on"] = {{"fabric", target.topology.at("fabric")},
                                             {"schedules", {machine.gpus}},
                                             {"copies", {machine.gpus}}};

    std::ostringstream said;
    for (const MeasuredCalibration& gemm : gemms) said << report(gemm, shown);
    for (const DeviceCalibration& other : others) said << report(other, target.name);
    for (const std::string& missing : machine.missing) said << "not measured: " << missing << '\n';
    for (const std::string& note : target.notes) said << "noticed: " << note << '\n';
    for (const std::string& warning : machine.warnings) said << "noticed: " << warning << '\n';
    said << to_text(validation);
    const auto put = [&](const fs::path& file, const std::string& text) {
        write(out / file, text);
        said << (out / file).string() << '\n';
    };
    const std::string file = target.name + ".json";
    put(fs::path("devices") / file, in_lines(target.device) + "\n");
    put(fs::path("calibrations") / file, target.calibration.dump(2) + "\n");
    if (target.writes_topology)
        put(fs::path("topologies") / (target.topology.at("name").get<std::string>() + ".json"),
            in_lines(target.topology) + "\n");
    put(fs::path("validation") / (target.name + ".html"), to_html(page_of(validation), page_origin()));
    return said.str();
}

}  // namespace overlap
