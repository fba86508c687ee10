#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/run/resolver.hpp"

namespace overlap {

/// Types of the operands of a workload's GEMMs, each once.
std::vector<DType> types_of_gemms(const Workload& workload);

/// A number of the machine's files.
struct MachineNumber {
    std::string key;  ///< as in a what-if: "device.hbm_GBps"
    Json parameter;   ///< {"value", "source"}
    double value() const { return parameter["value"].get<double>(); }
};

/// The numbers of a machine's files that a run can depend on. Left out: energy, parameters of other GEMM types,
/// compute units of GEMMs apart from the device's, and values that are read only through another one (hbm_peak_GBps,
/// and peak_TFLOPS but by gemm_roofline).
std::vector<MachineNumber> numbers_of(MachineFiles files, const Scenario& scenario);

/// Whether the values of a key are rates, or numbers of units that work side by side: more is faster.
bool is_rate(const std::string& key);

/// Which rates keep a larger `key` from making a run faster: the fewest that, four times as high, let it. Empty if
/// twice the value makes the run faster, or with no rate does. `config` has the what-if, in which `key` is `value`;
/// `makespan` is the run's.
std::vector<std::string> limits_of(const RunConfig& config, const std::string& key, double value,
                                   const Scenario& scenario, Seconds makespan, const ConfigFolder& folder);

}  // namespace overlap
