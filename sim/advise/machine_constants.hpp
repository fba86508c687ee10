#pragma once

#include "models/heuristic/overlap_features.hpp"
#include "sim/run/config_folder.hpp"
#include "sim/workload/workload.hpp"

namespace overlap {

/// Constants of a machine for the static heuristic, for one type of operands. GEMM, memory and launch
/// constants are those of the device. Rates and fixed times of collectives come from six simulations of one
/// collective alone, as a framework would measure them once on its machine. Deterministic.
class MachineConstants {
public:
    MachineConstants(const std::string& topology, const ConfigFolder& folder,
                     const Json& what_if = Json::object());
    /// Throws UserError if the device has no GEMM parameters for the type.
    overlap_advice::Machine of(DType dtype) const;

private:
    overlap_advice::Machine common_{};
    Calibration calibration_;
};

/// {"gpus": …, "compute_units": …}: the members in the order of the structs, as a C++ initialiser needs them.
std::string to_json_text(const overlap_advice::Machine& machine);

/// The operator of a pair that is not independent (asserted).
overlap_advice::Operator heuristic_operator(const Pair& pair);

}  // namespace overlap
