#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "models/calibration.hpp"
#include "sim/calibrate/recipes/kernel_recipes.hpp"

namespace overlap {

/// Rows of a table by format; a backward pass is a row of its own. Of an MoE table, `left_out` has the shapes whose
/// three distributions of tokens differ in efficiency by more than a factor of 2.5: there the library's tuner chose a
/// kernel of another kind (of fp8 and bf16 with 8192-wide experts, 7 to 30 times slower). They are in no fit.
struct KernelRows {
    std::map<std::string, std::vector<KernelRow>> kept, left_out;
};
/// `folder`: of the public data, or traces/ (KernelSource::alone).
KernelRows read_kernel_rows(const std::filesystem::path& folder, const KernelSource& source,
                            const Calibration& gemms);

}  // namespace overlap
