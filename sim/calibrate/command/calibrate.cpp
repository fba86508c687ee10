#include <algorithm>
#include <array>
#include <ctime>
#include <iomanip>
#include <memory>
#include <optional>
#include <regex>
#include <sstream>

#include "models/gemm_libraries.hpp"
#include "sim/calibrate/command/calibrate_archive.hpp"
#include "sim/calibrate/command/calibration_report.hpp"
#include "sim/calibrate/fits/gemm_calibration.hpp"
#include "sim/calibrate/fits/kernel_derivations.hpp"
#include "sim/calibrate/fits/kernel_fit.hpp"
#include "sim/calibrate/fits/measured_calibration.hpp"
#include "sim/calibrate/measurements/gemm_times_json.hpp"
#include "sim/calibrate/problems/device_problems.hpp"
#include "sim/commands/commands.hpp"
#include "sim/commands/progress_reporter.hpp"
#include "sim/core/output_file.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/core/temporary_folder.hpp"
#include "sim/run/config_folder.hpp"

namespace overlap {
namespace {

namespace fs = std::filesystem;

struct CalibrateFlags {
    std::string data, measurements, out, date;
    std::vector<std::string> devices;
    std::string name;
    bool kernels = false;
};

/// The columns of a fit, or of the fits of a table's kernel libraries.
template <class Validation>
void put_errors(std::ostream& out, const Validation& errors) {
    put_percent(out, 7, errors.fitted.mean);
    put_percent(out, 15, errors.held_out.mean);
    put_percent(out, 6, errors.held_out.p90);
    out << std::setw(10) << errors.held_out.families << std::setw(8) << errors.held_out.rows;
    put_percent(out, 12, errors.cross_validated_mean);
    put_percent(out, 6, errors.cross_validated_p90) << '\n';
}

/// `folder` relative to the top of the repository; unchanged if it is elsewhere.
std::string as_source(const fs::path& folder) {
    const fs::path relative =
        fs::absolute(folder).lexically_normal().lexically_relative(ConfigFolder::standard().traces());
    const bool outside = relative.empty() || *relative.begin() == "..";
    const std::string text = (outside ? folder : "traces" / relative).generic_string();
    return text.ends_with('/') ? text.substr(0, text.size() - 1) : text;
}

GemmRecipes shipped_recipes() {
    return read_gemm_recipes(ConfigFolder::standard().recipes());
}

std::string calibrate_from_measurements(const CalibrateFlags& flags, const std::string& device,
                                        const fs::path& folder) {
    const GemmRecipes all = shipped_recipes();
    const std::vector<MeasuredGemmRecipe>& recipes = all.measured;
    const std::size_t other_fits = device_problems(folder, as_source(folder)).size();
    auto progress = std::make_optional<ProgressReporter>("fits of " + device, recipes.size() + other_fits);
    const auto fitted = progress->counter();
    const std::vector<MeasuredCalibration> calibrations = calibrate_measured(recipes, folder, {}, fitted);
    write_groups(flags.out, device,
                 {{"gemm", measured_gemm_json(calibrations, as_source(folder))},
                  {"measured_gemms", gemm_times_json(folder, as_source(folder))}});
    const fs::path written = fs::path(flags.out) / (device + ".json");
    const std::vector<DeviceCalibration> copies =
        calibrate_device({device, read_gemm_calibration(written), read_gemm_times(written)}, folder,
                         as_source(folder), device_files(ConfigFolder::standard(), device), {}, fitted);
    progress.reset();
    write_groups(flags.out, device, device_groups(copies));
    std::ostringstream out;
    for (const MeasuredCalibration& calibration : calibrations) out << report(calibration, as_source(folder));
    for (const DeviceCalibration& calibration : copies) out << report(calibration, device);
    std::map<DType, GemmParameters> parameters;
    for (const MeasuredCalibration& calibration : calibrations)
        parameters[calibration.recipe.dtype] = calibration.fit.parameters;
    out << std::fixed << std::setprecision(1);
    for (const auto& [dtype, table, note, errors] :
         check_public_tables(all, device, parameters, flags.data)) {
        out << "check, not fitted: " << device << ' ' << name_of(dtype) << " on " << table
            << ", >= 20 us: mean " << 100 * errors.mean << " %, p90 " << 100 * errors.p90 << " % of "
            << errors.rows << " rows (" << note << ")\n\n";
    }
    return out.str();
}

std::string calibrate_from_tables(const CalibrateFlags& flags, const std::vector<std::string>& devices) {
    std::ostringstream table;
    table << "device   dtype    fitted   held out: mean     p90  families    rows   4-fold mean     p90\n"
          << std::fixed << std::setprecision(1);
    for (const GemmCalibrationResult& result :
         write_gemm_calibrations(shipped_recipes(), flags.data, flags.out, flags.date, devices)) {
        const auto& [device, dtype, errors] = result;
        table << std::left << std::setw(9) << device << std::setw(6) << name_of(dtype) << std::right;
        put_errors(table, errors);
        if (errors.libraries.fits.empty()) continue;
        table << "  library known";
        put_errors(table, errors.libraries);
    }
    for (const std::string& device : ConfigFolder::standard().names("devices")) {
        const fs::path written = fs::path(flags.out) / (device + ".json");
        const bool wanted = devices.empty() || contains(devices, device);
        if (!wanted || !fs::exists(written)) continue;
        const Calibration gemms{.device = device, .gemm = read_gemm_calibration(written), .gemm_times = {}};
        const std::vector<DeviceCalibration> beside =
            calibrate_from_overlap_tables(gemms, flags.data, device_files(ConfigFolder::standard(), device));
        if (beside.empty()) continue;
        write_groups(flags.out, device, device_groups(beside));
        for (const DeviceCalibration& calibration : beside) table << '\n' << report(calibration, device);
    }
    return table.str();
}

/// Attention and MoE kernels of the tables; a line for each number format.
std::string calibrate_kernels(const CalibrateFlags& flags) {
    std::ostringstream table;
    table << std::fixed << std::setprecision(1);
    const KernelRecipes recipes = read_kernel_recipes(ConfigFolder::standard().recipes());
    for (const KernelFitResult& fit :
         write_kernel_calibrations(recipes.tables, flags.data, ConfigFolder::standard().traces(), flags.out,
                                   flags.date, flags.devices)) {
        table << std::left << std::setw(7) << fit.device << std::setw(18) << fit.group << std::setw(22)
              << fit.format << std::right << "fitted" << std::setw(6) << 100 * fit.fitted.mean
              << " %, held out: mean" << std::setw(6) << 100 * fit.held_out.mean << " %, p90" << std::setw(6)
              << 100 * fit.held_out.p90 << " % of " << fit.held_out.rows << " rows, " << fit.held_out.families
              << " families\n";
    }
    const fs::path devices = ConfigFolder::standard().recipes().parent_path().parent_path() / "devices";
    for (const std::string& device :
         write_derived_kernels(recipes.derived, devices, flags.out, flags.date, flags.devices))
        table << device << ": scaled from another device\n";
    if (table.str().empty() && flags.kernels)
        throw UserError("--kernels: nothing to fit: " +
                        (flags.devices.empty() ? "" : joined(flags.devices, ", ") + ": ") +
                        "no table of attention or MoE kernels, and not both calibrations in " + flags.out +
                        " where one is scaled from another");
    return table.str();
}

/// Measurement folders by device: the given one, or those of traces/.
std::map<std::string, fs::path> measurements(const CalibrateFlags& flags) {
    const std::vector<MeasuredGemmRecipe> recipes = shipped_recipes().measured;
    if (flags.measurements.empty()) return find_measurements(recipes, ConfigFolder::standard().traces());
    return {{measured_device(recipes, flags.measurements), flags.measurements}};
}

/// The archive of scripts/measure in traces/ that a shipped calibration was fitted to; empty if it was to none.
fs::path archive_of(const std::string& device) {
    const ConfigFolder shipped = ConfigFolder::standard();
    if (!contains(shipped.names("calibrations"), device)) return {};
    const Json gemm =
        shipped.calibration_file(device).json.value("/gemm/bf16/provenance/file"_json_pointer, std::string());
    const fs::path file = shipped.traces().parent_path() / fs::path(gemm.get<std::string>()).parent_path();
    return file.extension() == ".gz" && fs::exists(file) ? file : fs::path();
}

/// Fits the groups again that a shipped calibration has from an archive in traces/.
std::string calibrate_from_archive(const CalibrateFlags& flags, const std::string& device,
                                   const fs::path& archive) {
    const TemporaryFolder folder;
    const std::string said = calibrate_archive(archive, device, folder.path());
    const std::string text = read_json_file(folder.path() / "calibrations" / (device + ".json")).dump();
    const std::regex name(archive.filename().string());
    const Json fitted = parse_json(std::regex_replace(text, name, as_source(archive)), device);
    const Json shipped = ConfigFolder::standard().calibration_file(device).json;
    Json groups = Json::object();
    for (const auto& [key, group] : shipped.items())
        if (key == "gemm" || key == "measured_gemms" || contains(calibrated_groups, key))
            groups[key] = fitted.at(key);
    write_groups(flags.out, device, groups);
    return said.substr(0, said.find("in no fit, so"));
}

/// The devices to fit whose GEMMs are only in public tables. Throws UserError for one of which nothing was measured.
std::vector<std::string> only_in_tables(const CalibrateFlags& flags, const std::vector<std::string>& measured,
                                        bool own_only) {
    std::vector<std::string> known = measured;
    if (!own_only) append(known, table_devices(shipped_recipes()));
    std::vector<std::string> left;
    for (const std::string& device : flags.devices.empty() ? known : flags.devices) {
        if (contains(measured, device)) continue;
        if (!contains(known, device))
            throw UserError("device '" + device + "' has no measurements in " +
                            (own_only ? flags.measurements : "traces/") + suggestion(device, known));
        left.push_back(device);
    }
    return left;
}

/// True for an archive of scripts/measure, or the folder that it was made of.
bool is_archive(const std::string& name) {
    const fs::path path(name);
    return path.extension() == ".gz" || path.extension() == ".tar" || fs::exists(path / "manifest.json");
}

void execute(CalibrateFlags flags) {
    if (std::ranges::any_of(flags.devices, is_archive)) {
        if (flags.devices.size() > 1 || !flags.data.empty() || !flags.measurements.empty())
            throw UserError("calibrate: an archive stands alone, with --name and --out");
        return print(
            calibrate_archive(flags.devices.front(), flags.name, flags.out.empty() ? "configs" : flags.out));
    }
    if (!flags.name.empty()) throw UserError("calibrate: --name is the name of an archive's device");
    if (flags.out.empty()) flags.out = "configs/calibrations";
    if (flags.date.empty()) flags.date = today();
    std::vector<fs::path> folders;
    const bool own_only = flags.data.empty() && !flags.measurements.empty();
    if (flags.data.empty()) flags.data = ConfigFolder::standard().traces() / "published";
    folders.push_back(flags.data);
    if (!flags.measurements.empty()) folders.push_back(flags.measurements);
    for (const auto& folder : folders)
        if (!fs::is_directory(folder)) throw UserError(folder.string() + ": no such folder");

    if (flags.kernels) return print(calibrate_kernels(flags));
    std::map<std::string, fs::path> measured = measurements(flags);
    if (flags.measurements.empty())
        for (const std::string& device : ConfigFolder::standard().names("calibrations"))
            if (const fs::path archive = archive_of(device); !archive.empty()) measured[device] = archive;
    const std::vector<std::string> from_tables = only_in_tables(flags, keys_of(measured), own_only);
    const auto wanted = [&](const std::string& device) {
        return flags.devices.empty() || contains(flags.devices, device);
    };
    make_folder(flags.out);

    std::string output;
    for (const auto& [device, folder] : measured)
        if (wanted(device))
            output += is_archive(folder) ? calibrate_from_archive(flags, device, folder)
                                         : calibrate_from_measurements(flags, device, folder);
    if (!from_tables.empty()) output += calibrate_from_tables(flags, from_tables);
    if (!own_only) output += calibrate_kernels(flags);
    print(output);
}

}  // namespace

void add_calibrate_command(CLI::App& app) {
    CLI::App* command = app.add_subcommand(
        "calibrate",
        "Fit the models to our measurements, and GEMMs also to public tables; print errors on held-out "
        "families");
    auto flags = std::make_shared<CalibrateFlags>();
    command->add_option("--measurements", flags->measurements,
                        "Folder of microbenchmark results (gemm.jsonl); default: those in traces/");
    command->add_option("--data", flags->data, "Folder of public tables; default traces/published");
    command->add_flag(
        "--kernels", flags->kernels,
        "Fit only attention and MoE kernels, to our own tables and those of --data; other fits in --out stay");
    command->add_option(
        "--out", flags->out,
        "Folder of <device>.json, created if missing; default configs/calibrations. Of an archive: the "
        "folder of devices/, calibrations/ and topologies/, default configs");
    command->add_option(
        "--name", flags->name,
        "Name of the device that an archive is from; default: the shipped device that its facts "
        "match");
    command->add_option("--date", flags->date,
                        "Date that is written into fits to public tables; default: today (UTC)");
    command->add_option(
        "devices", flags->devices,
        "Devices to fit, default all that have measurements; or one archive of scripts/measure");
    command->callback([flags] { execute(*flags); });
}

}  // namespace overlap
