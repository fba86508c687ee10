#include "sim/calibrate/fits/fit_device.hpp"

#include <algorithm>
#include <cmath>
#include <future>
#include <set>

#include "sim/calibrate/fits/robust_fit.hpp"
#include "sim/core/file_version.hpp"

namespace overlap {
namespace {

constexpr double furthest = 5;     // spreads that a value may be away from the start
constexpr double log_step = 1e-2;  // large enough to cross the steps that polling causes

/// Steps for derivatives may lead out of a range.
DeviceValues values_at(const DeviceProblem& problem, const std::vector<double>& logs) {
    DeviceValues values;
    for (std::size_t i = 0; i < logs.size(); ++i) {
        const Range& range = problem.parameters[i].range;
        values[problem.parameters[i].name()] = std::clamp(std::exp(logs[i]), range.low, range.high);
    }
    return values;
}

std::vector<FittedValue> fit(const DeviceProblem& problem, const std::vector<const DeviceRow*>& rows,
                             const MachinesWith& machines) {
    RobustProblem robust;
    robust.step = log_step;
    robust.smooth = false;
    for (const DeviceParameter& parameter : problem.parameters) {
        const double start = std::log(parameter.start), spread = std::log(parameter.spread);
        robust.start.push_back(start);
        robust.spread.push_back(spread);
        robust.low.push_back(parameter.range.low > 0
                                 ? std::max(start - furthest * spread, std::log(parameter.range.low))
                                 : start - furthest * spread);
        robust.high.push_back(std::min(start + furthest * spread, std::log(parameter.range.high)));
    }
    double most = 0;  // largest weight, which scales the residuals
    for (const DeviceRow* row : rows)
        robust.weights.push_back(row->weight), most = std::max(most, row->weight);
    robust.errors = [&](const std::vector<double>& logs, double* errors) {
        const Machines trial = machines(values_at(problem, logs));
        for (const DeviceRow* row : rows) *errors++ = std::log(row->predict(trial) / row->measured);
    };
    const RobustFit known = robust_fit(robust);
    std::vector<FittedValue> result;
    for (std::size_t i = 0; i < known.at.size(); ++i) {
        const double value = std::exp(known.at[i]);
        result.push_back({rounded(value), value * known.standard_error[i], known.prior_share[i],
                          known.residual[i] / most});
    }
    return result;
}

DeviceValues values_of(const DeviceProblem& problem, const std::vector<FittedValue>& fitted) {
    DeviceValues values;
    for (std::size_t i = 0; i < fitted.size(); ++i) values[problem.parameters[i].name()] = fitted[i].value;
    return values;
}

std::map<std::string, int> deal(const std::vector<DeviceRow>& rows) {
    std::map<std::string, int> folds;
    for (const DeviceRow& row : rows) folds[row.family];
    int next = 0;
    for (auto& [family, fold] : folds) fold = next++ % device_folds;
    return folds;
}

}  // namespace

DeviceValues DeviceCalibration::values() const {
    return values_of(problem, fitted);
}

std::vector<ErrorClass> DeviceCalibration::classes() const {
    std::vector<ErrorClass> result;
    for (const std::string& name : problem.classes) {
        std::vector<double> all, unseen;
        for (std::size_t i = 0; i < problem.rows.size(); ++i) {
            const DeviceRow& row = problem.rows[i];
            if (std::find(row.classes.begin(), row.classes.end(), name) == row.classes.end()) continue;
            all.push_back(predicted[i] / row.measured - 1);
            unseen.push_back(predicted_held_out[i] / row.measured - 1);
        }
        result.push_back({name, all.size(), summarise(all), summarise(unseen)});
    }
    return result;
}

std::vector<std::string> DeviceCalibration::undetermined() const {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < fitted.size(); ++i)
        if (fitted[i].prior_share > mostly_prior) names.push_back(problem.parameters[i].name());
    return names;
}

DeviceCalibration calibrate(DeviceProblem problem, const MachinesWith& machines) {
    DeviceCalibration result{.problem = std::move(problem)};
    const std::vector<DeviceRow>& rows = result.problem.rows;
    const std::map<std::string, int> folds = deal(rows);
    const auto fit_without = [&](int fold) {
        std::vector<const DeviceRow*> seen;
        for (const DeviceRow& row : rows)
            if (row.weight > 0 && folds.at(row.family) != fold) seen.push_back(&row);
        return fit(result.problem, seen, machines);
    };
    std::vector<std::future<std::vector<FittedValue>>> fits;  // the last fit leaves nothing out
    for (int fold = 0; fold <= device_folds; ++fold)
        fits.push_back(std::async(std::launch::async, fit_without, fold));
    std::vector<Machines> unseen;
    for (int fold = 0; fold < device_folds; ++fold)
        unseen.push_back(machines(values_of(result.problem, fits[static_cast<std::size_t>(fold)].get())));
    result.fitted = fits.back().get();
    const Machines all = machines(result.values());
    for (const DeviceRow& row : rows) {
        result.predicted.push_back(row.predict(all));
        result.predicted_held_out.push_back(
            row.predict(unseen[static_cast<std::size_t>(folds.at(row.family))]));
    }
    return result;
}

const Machine& machine_of(const Machines& machines, int gpus) {
    const auto found = machines.lower_bound(gpus);
    if (found == machines.end()) throw std::out_of_range("no machine of " + std::to_string(gpus) + " GPUs");
    return found->second;
}

Json trial_calibration(const std::string& device, const DeviceValues& values) {
    Json json{{"schema", newest_version("calibration")}, {"device", device}};
    for (const auto& [name, value] : values)
        json[Json::json_pointer("/" + name)] = {{"value", value}, {"source", "trial"}};
    return json;
}

void add_to_groups(const DeviceCalibration& calibration, Json& groups) {
    const DeviceProblem& problem = calibration.problem;
    std::set<std::string> families;
    std::size_t seen = 0;
    for (const DeviceRow& row : problem.rows) {
        families.insert(row.family);
        if (row.weight > 0) ++seen;
    }
    Json provenance{
        {"file", problem.file},
        {"date", problem.date},
        {"method", "models/calibration/fit_device on all rows that count; held out: " +
                       std::to_string(device_folds) + " folds of families (" + problem.families + ")"},
        {"rows_fitted", seen},
        {"families", families.size()},
        {"classes", classes_json(calibration.classes())},
        {"not_determined", calibration.undetermined()}};
    for (std::size_t i = 0; i < problem.parameters.size(); ++i) {
        const DeviceParameter& parameter = problem.parameters[i];
        groups[parameter.group]["provenance"][problem.name] = provenance;
        groups[Json::json_pointer("/" + parameter.name())] = parameter_entry(
            parameter.key, calibration.fitted[i],
            {.fitted = "fitted to " + problem.file,
             .prior = "prior (" + parameter.reason + "): the measurements do not determine it",
             .file = problem.file,
             .date = problem.date});
    }
}

}  // namespace overlap
