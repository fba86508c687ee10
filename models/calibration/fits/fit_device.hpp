#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "models/calibration/fits/parameter_json.hpp"
#include "models/cost_model.hpp"

namespace overlap {

/// A key of a device file that is fitted, and what is believed of it before the rows speak: log-normal around
/// `start`, within a factor of `spread` two times in three.
struct DeviceParameter {
    std::string group;  ///< one of calibrated_groups
    std::string key;    ///< in the unit of its ending; in deeper objects as "weights/hbm/gemm"
    double start = 0;
    double spread = 2;
    Range range;
    std::string reason;            ///< for the belief
    bool of_several_gpus = false;  ///< not there while others are fitted: GPUs are alike
    std::string name() const { return group + "/" + key; }
};

/// Machines by the name of their topology file.
using Machines = std::map<std::string, Machine>;

/// Something measured, and the prediction of it: both in the same unit, and positive.
struct DeviceRow {
    std::string name;                  ///< for people: which case it is
    std::string family;                ///< rows of one family are in the same fold
    std::vector<std::string> classes;  ///< in which it is judged
    double measured = 0;
    double weight = 1;                               ///< in the fit; 0: judged only
    std::function<double(const Machines&)> predict;  ///< pure; may be called from several threads
};

/// A part of a device's parameters, and what they are fitted to.
struct DeviceProblem {
    std::string name;  ///< "DMA copies"
    std::vector<DeviceParameter> parameters;
    std::vector<DeviceRow> rows;
    std::vector<std::string> classes;            ///< in the order of the report
    std::string families;                        ///< what a family is
    std::string file, date;                      ///< of the measurements
    std::string quantity = "time", unit = "us";  ///< of what the rows measure
};

/// Values by DeviceParameter::name().
using DeviceValues = std::map<std::string, double>;
/// The machines of a device that has these values; those of parameters that are not in it are the caller's.
using MachinesWith = std::function<Machines(const DeviceValues&)>;

/// A problem solved with all its rows, and once without each fold of families.
struct DeviceCalibration {
    DeviceProblem problem;
    std::vector<FittedValue> fitted;         ///< by parameter, rounded as the calibration file has it
    std::vector<double> predicted;           ///< by row: with `fitted`
    std::vector<double> predicted_held_out;  ///< by row: by the fit that has not seen its family

    DeviceValues values() const;
    std::vector<ErrorClass> classes() const;
    std::vector<std::string> undetermined() const;
};

/// As many folds as `families`, at most this many; families are dealt to them in order of their names.
inline constexpr int device_folds = 5;

/// Fits as robust_fit does, of log(predicted / measured). Deterministic, also in how many threads run.
DeviceCalibration calibrate(DeviceProblem problem, const MachinesWith& machines);

/// A calibration file with these values and no measurements, as read_device takes it.
Json trial_calibration(const std::string& device, const DeviceValues& values);
/// Adds what was fitted to the groups of a calibration file: every value with unit, standard error, residual,
/// file, date and source, and the errors in the provenance of each group.
void add_to_groups(const DeviceCalibration& calibration, Json& groups);

}  // namespace overlap
