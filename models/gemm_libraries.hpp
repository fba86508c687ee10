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

/// `gemm_library` of a calibration whose `gemm` group is taken as it is: the mix of all libraries.
inline const std::string mixed_libraries = "mixed";

/// The group `gemm_libraries` of a calibration, {"asm": {"bf16": {…}}, …} with the groups of
/// read_gemm_parameters; none where the file has no such group. Throws UserError as that does.
std::map<std::string, GemmLibrary> read_gemm_libraries(const ConfigFile& file);

/// Replaces those of `parameters` that the library in `gemm_library` has; the others stay. Throws UserError
/// for a library that is not there.
void choose_gemm_library(const ConfigFile& file, std::map<DType, GemmParameters>& parameters);

/// Whose kernels the prices of a type's GEMMs are of: `library` of the group that is taken, as above. None
/// where the calibration does not say.
std::optional<std::string> library_of_gemms(const ConfigFile& file, DType dtype);

/// The GEMM parameters of a whole calibration {"schema": 1, "device": …, "gemm": …}, of the chosen library. Throws
/// UserError on anything unknown, missing or out of range.
std::map<DType, GemmParameters> read_gemm_calibration(const std::filesystem::path& path);
std::map<DType, GemmParameters> read_gemm_calibration(const ConfigFile& file);

}  // namespace overlap
