#include "sim/calibrate/command/calibration_report.hpp"

#include <sstream>

#include "sim/calibrate/fits/gemm_json.hpp"
#include "sim/core/shown.hpp"

namespace overlap {
namespace {

std::string undetermined(const std::vector<std::string>& names) {
    return "not determined by the measurements, left at the prior: " +
           (names.empty() ? "none" : joined(names, " ")) + "\n\n";
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

}  // namespace overlap
