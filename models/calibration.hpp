#pragma once

#include <map>
#include <string>

#include "models/gemm_parameters.hpp"
#include "models/gemm_times.hpp"
#include "models/kernel_calibration.hpp"

namespace overlap {

/// The fitted parameters of one device (configs/calibrations/<device>.json).
struct Calibration {
    std::string device;
    std::map<DType, GemmParameters> gemm;
    GemmTimes gemm_times;  ///< measured; empty for most devices
    /// Parameters of the GPU that `gemm_times` were measured on, where a what-if changed `gemm`; else empty
    std::map<DType, GemmParameters> measured_gemm = {};
    KernelCalibration kernels = {};               ///< attention and grouped GEMMs
    std::map<DType, std::string> libraries = {};  ///< whose GEMMs the prices describe, where the file says it

    /// Throws UserError, which lists the calibrated data types.
    const GemmParameters& gemm_for(DType dtype) const {
        const auto found = gemm.find(dtype);
        if (found != gemm.end()) return found->second;
        std::vector<std::string> known;
        for (const auto& [type, parameters] : gemm) known.push_back(name_of(type));
        throw UserError("device " + device + " has no GEMM calibration for " + name_of(dtype) +
                        suggestion("", known));
    }
    /// Empty if not known.
    std::string gemm_library_of(DType dtype) const {
        const auto found = libraries.find(dtype);
        return found == libraries.end() ? "" : found->second;
    }
};

}  // namespace overlap
