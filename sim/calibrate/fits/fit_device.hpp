#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "models/cost_model.hpp"
#include "sim/calibrate/fits/parameter_json.hpp"

namespace overlap {

/// A fitted key of a device file with its prior: log-normal around `start`, within a factor of
/// `spread` two times in three.
struct DeviceParameter {
    std::string group;  ///< one of calibrated_groups
    std::string key;    ///< with the unit as suffix; nested keys as "weights/hbm/gemm"
    double start = 0;
    double spread = 2;
    Range range;
    std::string reason;  ///< of the prior
    /// Left out while other parameters are fitted, because GPUs count as alike there
    bool of_several_gpus = false;
    /// Belongs to an effect that some devices lack
    bool optional = false;
    std::string name() const { return group + "/" + key; }
};

/// Machines of one device by their number of GPUs.
using Machines = std::map<int, Machine>;
/// The one with `gpus` GPUs, or with the next larger number. Throws std::out_of_range if there is none.
const Machine& machine_of(const Machines& machines, int gpus);

/// True for a row of a measurement file that fits must not see. Empty: they see all.
using HeldOut = std::function<bool(const Json& row)>;

/// A measurement and its prediction; both positive and in the same unit.
struct DeviceRow {
    std::string name;                  ///< of the case, for reports
    std::string family;                ///< rows of one family are in the same fold
    std::vector<std::string> classes;  ///< error classes that count this row
    double measured = 0;
    double weight = 1;                               ///< in the fit; 0: only judged
    std::function<double(const Machines&)> predict;  ///< pure; may be called from several threads
};

/// A group of a device's parameters, and the rows that they are fitted to.
struct DeviceProblem {
    std::string name;  ///< "DMA copies"
    std::vector<DeviceParameter> parameters = {};
    std::vector<DeviceRow> rows = {};
    std::vector<std::string> classes = {};  ///< in report order
    std::string families = {};              ///< description of a family
    std::string file = {}, date = {};       ///< of the measurements
    std::string unit = "us";                ///< of what the rows measure
};

/// Values by DeviceParameter::name().
using DeviceValues = std::map<std::string, double>;
/// Makes the machines of a device with these values. The caller sets parameters that are not listed.
using MachinesWith = std::function<Machines(const DeviceValues&)>;

/// A problem solved with all its rows, and once without each fold of families.
struct DeviceCalibration {
    DeviceProblem problem;
    std::vector<FittedValue> fitted = {};         ///< by parameter, rounded as in the calibration file
    std::vector<double> predicted = {};           ///< by row, with `fitted`
    std::vector<double> predicted_held_out = {};  ///< by row, by the fit that has not seen the row's family

    DeviceValues values() const;
    std::vector<ErrorClass> classes() const;
    std::vector<std::string> undetermined() const;
};

/// At most this many folds, and at most one a family. Families are dealt to
/// the folds in order of their names.
inline constexpr int device_folds = 5;

/// Fits log(predicted / measured) by robust_fit. Deterministic, also in the number of threads.
DeviceCalibration calibrate(DeviceProblem problem, const MachinesWith& machines);

/// A calibration file with these values and no measurements, in the form that read_device takes.
Json trial_calibration(const std::string& device, const DeviceValues& values);
/// Adds the fitted values to the groups of a calibration file: each with unit, standard error, residual,
/// file, date and source; the errors go to the provenance of each group.
void add_to_groups(const DeviceCalibration& calibration, Json& groups);

}  // namespace overlap
