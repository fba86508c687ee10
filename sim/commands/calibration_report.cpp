#include "sim/commands/calibration_report.hpp"

#include <algorithm>
#include <array>
#include <sstream>

#include "models/calibration/fits/gemm_json.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/report/plot.hpp"

namespace overlap {
namespace {

std::string undetermined(const std::vector<std::string>& names) {
    return "not determined by the measurements, left at the prior: " +
           (names.empty() ? "none" : joined(names, " ")) + "\n\n";
}

void draw_gemms(const std::filesystem::path& folder, const std::string& device, DType dtype,
                const std::string& held_out, const std::vector<PlotSeries>& series) {
    const std::string title = device + " " + name_of(dtype) + " GEMM, " + held_out;
    write_picture(folder / (device + "_" + name_of(dtype) + "_gemm.svg"),
                  comparison_plot(title, "GEMM time", "us", series));
}

PlotPoint point(Seconds measured, Seconds predicted) {
    return {to_microseconds(measured), to_microseconds(predicted)};
}

}  // namespace

std::string report(const MeasuredCalibration& calibration, const std::string& folder) {
    std::ostringstream out;
    out << calibration.recipe.device << ' ' << name_of(calibration.recipe.dtype) << ": "
        << calibration.data.rows.size() << " GEMMs of " << calibration.families << " families, " << folder
        << '/' << calibration.data.file << ", held out in " << measured_folds
        << " folds by family; P = " << class_gpus << '\n'
        << error_table(gemm_classes(calibration.judged))
        << undetermined(undetermined_parameters(calibration.fit));
    return out.str();
}

std::string report(const DeviceCalibration& calibration, const std::string& device) {
    const DeviceProblem& problem = calibration.problem;
    std::ostringstream out;
    out << device << ", " << problem.name << ": " << problem.rows.size() << " cases, " << problem.file
        << ", held out in " << device_folds << " folds by family (" << problem.families << ")\n"
        << error_table(calibration.classes()) << undetermined(calibration.undetermined());
    return out.str();
}

void draw(const std::filesystem::path& folder, const MeasuredCalibration& calibration) {
    std::vector<PlotSeries> series{
        {"beta = 0", {}}, {"K-slab, beta = 1", {}}, {"below 50 us", {}}, {"a GEMM of a long run", {}}};
    for (const auto& [measured, fitted, held_out] : calibration.judged) {
        std::size_t place = measured.shape.accumulate ? 1 : 0;
        if (measured.time < shortest_class_time) place = 2;
        if (measured.busy > Seconds()) place = 3;
        series[place].points.push_back(point(measured.time, held_out));
    }
    draw_gemms(folder, calibration.recipe.device, calibration.recipe.dtype,
               "held out in " + std::to_string(measured_folds) + " folds by operator family", series);
}

void draw(const std::filesystem::path& folder, const std::string& device,
          const DeviceCalibration& calibration) {
    const DeviceProblem& problem = calibration.problem;
    std::vector<PlotSeries> series;
    for (const std::string& name : problem.classes) {
        if (name.starts_with(' ')) continue;  // a part of a class that is drawn already
        PlotSeries one{name, {}};
        for (std::size_t i = 0; i < problem.rows.size(); ++i) {
            const std::vector<std::string>& classes = problem.rows[i].classes;
            if (contains(classes, name))
                one.points.push_back({problem.rows[i].measured, calibration.predicted_held_out[i]});
        }
        if (!one.points.empty()) series.push_back(std::move(one));
    }
    std::string file = device + "_" + problem.name + ".svg";
    std::ranges::replace(file, ' ', '_');
    write_picture(folder / file,
                  comparison_plot(device + " " + problem.name + ", held out by " + problem.families,
                                  problem.quantity, problem.unit, series));
}

void draw(const std::filesystem::path& folder, const GemmCalibrationResult& result) {
    std::vector<PlotSeries> series{{"M < 256", {}}, {"M 256 to 2047", {}}, {"M >= 2048", {}}};
    constexpr std::array<std::int64_t, 2> limits{256, 2048};
    const GemmFit& fit = result.validation.fit;
    for (const GemmMeasurement& row : result.validation.held_out_rows) {
        const auto place = static_cast<std::size_t>(row.shape.m >= limits[0]) + (row.shape.m >= limits[1]);
        series[place].points.push_back(point(row.time, fitted_time(row, fit.parameters, fit.campaign_rates)));
    }
    draw_gemms(folder, result.device, result.dtype, "families held out of the fit", series);
}

}  // namespace overlap
