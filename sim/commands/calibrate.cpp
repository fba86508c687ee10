#include <algorithm>
#include <array>
#include <ctime>
#include <iomanip>
#include <memory>
#include <optional>
#include <sstream>

#include "models/calibration/fits/gemm_calibration.hpp"
#include "models/calibration/fits/kernel_derivations.hpp"
#include "models/calibration/fits/kernel_fit.hpp"
#include "models/calibration/fits/measured_calibration.hpp"
#include "models/calibration/measurements/gemm_times_json.hpp"
#include "models/calibration/problems/device_problems.hpp"
#include "models/gemm_libraries.hpp"
#include "sim/commands/calibrate_archive.hpp"
#include "sim/commands/calibration_report.hpp"
#include "sim/commands/commands.hpp"
#include "sim/commands/progress_reporter.hpp"
#include "sim/core/output_file.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/report/gnuplot.hpp"
#include "sim/run/config_folder.hpp"

namespace overlap {
namespace {

namespace fs = std::filesystem;

struct CalibrateFlags {
    std::string data, measurements, out, date, plots;
    std::vector<std::string> devices;
    std::string name;
    bool kernels = false;
};

/// A fraction as a cell of `width` in per cent.
std::ostream& put_percent(std::ostream& out, int width, double share) {
    return out << std::setw(width) << 100 * share << " %";
}

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
    for (const MeasuredCalibration& calibration : calibrations) {
        out << report(calibration, as_source(folder));
        if (!flags.plots.empty()) draw(flags.plots, calibration);
    }
    for (const DeviceCalibration& calibration : copies) {
        out << report(calibration, device);
        if (!flags.plots.empty()) draw(flags.plots, device, calibration);
    }
    if (flags.data.empty()) return out.str();
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
        if (!flags.plots.empty()) draw(flags.plots, result);
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
    if (table.str().empty())
        throw UserError("--kernels: nothing to fit: " + (flags.devices.empty() ? "" : joined(flags.devices, ", ") + ": ") +
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

/// True for an archive of scripts/measure, or the folder that it was made of.
bool is_archive(const std::string& name) {
    const fs::path path(name);
    return path.extension() == ".gz" || path.extension() == ".tar" || fs::exists(path / "manifest.json");
}

void execute(CalibrateFlags flags) {
    if (std::ranges::any_of(flags.devices, is_archive)) {
        if (flags.devices.size() > 1 || !flags.data.empty() || !flags.measurements.empty() ||
            !flags.plots.empty())
            throw UserError("calibrate: an archive stands alone, with --name and --out");
        return print(
            calibrate_archive(flags.devices.front(), flags.name, flags.out.empty() ? "configs" : flags.out));
    }
    if (!flags.name.empty()) throw UserError("calibrate: --name is the name of an archive's device");
    if (flags.out.empty()) flags.out = "configs/calibrations";
    if (flags.date.empty()) flags.date = today();
    std::vector<fs::path> folders;
    if (!flags.data.empty()) folders.push_back(fs::path(flags.data) / "gemm");
    if (!flags.measurements.empty()) folders.push_back(flags.measurements);
    for (const auto& folder : folders)
        if (!fs::is_directory(folder)) throw UserError(folder.string() + ": no such folder");
    if (!flags.plots.empty()) require_gnuplot();

    if (flags.kernels) return print(calibrate_kernels(flags));
    const std::map<std::string, fs::path> measured = measurements(flags);
    const auto wanted = [&](const std::string& device) {
        return flags.devices.empty() || contains(flags.devices, device);
    };
    std::vector<std::string> from_tables;
    for (const std::string& device : flags.devices)
        if (!measured.contains(device)) from_tables.push_back(device);
    if (flags.data.empty() && !from_tables.empty())
        throw UserError("device '" + from_tables.front() + "' has no measurements in " +
                        (flags.measurements.empty() ? "traces/" : flags.measurements) +
                        suggestion(from_tables.front(), keys_of(measured)) +
                        "; --data takes a folder of public tables");
    if (flags.data.empty() && measured.empty())
        throw UserError("no measurements found: give --measurements, a folder with gemm.jsonl, or --data");
    make_folder(flags.out);
    if (!flags.plots.empty()) make_folder(flags.plots);

    std::string output;
    for (const auto& [device, folder] : measured)
        if (wanted(device)) output += calibrate_from_measurements(flags, device, folder);
    if (!flags.data.empty() && (flags.devices.empty() || !from_tables.empty()))
        output += calibrate_from_tables(flags, from_tables);
    if (!flags.data.empty()) output += calibrate_kernels(flags);
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
    command->add_option("--data", flags->data, "Folder of public tables, with gemm/ in it; default none");
    command->add_flag(
        "--kernels", flags->kernels,
        "Fit only attention and MoE kernels, to our own tables and those of --data; other fits in --out stay");
    command->add_option(
        "--out", flags->out,
        "Folder of <device>.json, created if missing; default configs/calibrations. Of an archive: the "
        "folder of devices/, calibrations/ and topologies/, default configs");
    command->add_option("--name", flags->name,
                        "Name of the device that an archive is from; default: the shipped device that its facts "
                        "match");
    command->add_option(
        "--plots", flags->plots,
        "Folder for SVG plots of held-out predictions against measurements; needs gnuplot; default none");
    command->add_option("--date", flags->date, "Date that is written into fits to public tables; default: today (UTC)");
    command->add_option(
        "devices", flags->devices,
        "Devices to fit, default all that have measurements; or one archive of scripts/measure");
    command->callback([flags] { execute(*flags); });
}

}  // namespace overlap
