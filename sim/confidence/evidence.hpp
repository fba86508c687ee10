#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/dtype.hpp"
#include "sim/core/json.hpp"

namespace overlap {

struct Machine;

/// How a price came about, best first.
enum class Basis { measured, fitted, published, derived, estimate };
inline const std::array<std::string, 5> basis_names{"measured", "fitted", "published", "derived", "estimate"};

/// What is known about one kind of price.
struct Evidence {
    Basis basis = Basis::estimate;  ///< of several values: the most frequent one
    int rows = 0;                   ///< measurements in the fit; 0: not fitted
    /// How many values have a source, and how many are estimates: in a fit those that stayed near their priors
    int values = 0, estimates = 0;
    /// Mean of |predicted / measured − 1| on measurements that no fit saw; none if nobody measured
    std::optional<double> error = {};
    /// That on another machine with this kind of GPU, where it was not measured on this one
    std::optional<double> elsewhere = {};
};

/// How far makespans of whole schedules were from measurements that no fit saw.
struct SchedulesMeasured {
    int cases = 0;
    double mean = 0, p90 = 0;  ///< of |predicted / measured − 1|
    std::string machine;
};

/// A published figure that is predicted outside its tolerance (configs/experiments).
struct MissedFigure {
    std::string experiment, figure, unit;
    std::string device;  ///< of the machine
    std::string kind;    ///< of the run, as kind_of_run names it
    double published = 0, predicted = 0;
};

/// Errors to expect where a machine was not measured (configs/accuracy.json): fitted to published figures and to
/// schedules measured on other machines.
struct Accuracy {
    double p90_over_mean = 0;              ///< ninth decile over mean of |ln(predicted / measured)|
    std::map<std::string, double> widths;  ///< mean |ln(predicted / measured)|, by kind of price or of run
    std::vector<MissedFigure> missed;
};

/// What is known about a machine's prices.
struct MachineEvidence {
    std::map<DType, Evidence> gemm;
    /// Fits of attention and grouped GEMMs, by group and format of a calibration: "attention_prefill/bf16"
    std::map<std::string, Evidence> kernels;
    Evidence dma, small_dma;  ///< copies of at least 1 MiB, and smaller ones
    Evidence copy_kernels;
    std::map<std::string, Evidence> collectives;               ///< by key_of_collective
    Evidence beside_dma, beside_copy_kernels, beside_library;  ///< contention of GEMMs with these
    Evidence collective_beside_gemms;                          ///< and of library collectives with GEMMs
    std::optional<SchedulesMeasured> schedules;
    std::optional<SchedulesMeasured> layers;  ///< of transformers, on one GPU
    std::shared_ptr<const Accuracy> accuracy = {};
};

/// Reads sources and errors from a device file and its calibration. Source texts of device files begin with
/// "measured:", "derived:" or "estimate:", or cite a publication.
MachineEvidence evidence_of(const Json& device, const Json& calibration);

/// What is known about a machine's prices; empty for a machine made in a test or a fit.
const MachineEvidence& evidence_of(const Machine& machine);

/// What a host file says of its calls' times: their sources, and its "error_pct".
Evidence evidence_of_host(const Json& host);

}  // namespace overlap
