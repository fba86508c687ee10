#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "models/gemm_parameters.hpp"
#include "sim/core/what_if.hpp"

namespace overlap {

/// Parameters of one kernel library, of the types that it was fitted for.
using GemmLibrary = std::map<DType, GemmParameters>;

/// Value of a calibration's `gemm_library` that selects the `gemm` group: the mix of all libraries.
inline const std::string mixed_libraries = "mixed";

/// The group `gemm_libraries` of a calibration: {"asm": {"bf16": {…}}, …}, each as read_gemm_parameters
/// expects it. Empty if the file has no such group. Throws UserError like read_gemm_parameters.
std::map<std::string, GemmLibrary> read_gemm_libraries(const ConfigFile& file);

/// Replaces the parameters of every type that the library named by `gemm_library` has. Throws
/// UserError for an unknown library.
void choose_gemm_library(const ConfigFile& file, std::map<DType, GemmParameters>& parameters);

/// The kernel library whose GEMMs of this type the prices describe. None if the calibration does not say.
std::optional<std::string> library_of_gemms(const ConfigFile& file, DType dtype);

/// The GEMM parameters of a whole calibration file {"schema": 1, "device": …, "gemm": …}, for the chosen
/// library. Throws UserError for unknown, missing or out-of-range values.
std::map<DType, GemmParameters> read_gemm_calibration(const std::filesystem::path& path);
std::map<DType, GemmParameters> read_gemm_calibration(const ConfigFile& file);

}  // namespace overlap
